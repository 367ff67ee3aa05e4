/* A program on a host with a NIC (of stub_verbs.c) and Weft's device: each call reaches the library of its device, in the
   program and in a forked child. Exits with 0, or prints the line of the failed check. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mrc.h"

#define CHECK(what)                                                           \
  do {                                                                        \
    if (!(what)) {                                                            \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);      \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

enum { kMaxQp = 77, kKey = 4711 };
static char bytes[4096];

static void use_real(struct ibv_device* device) {
  struct ibv_context* const context = ibv_open_device(device);
  struct ibv_device_attr attr;
  CHECK(context != NULL && ibv_query_device(context, &attr) == 0 && attr.max_qp == kMaxQp);
  struct ibv_pd* const pd = ibv_alloc_pd(context);
  struct ibv_mr* const mr = (ibv_reg_mr)(pd, bytes, sizeof(bytes), IBV_ACCESS_LOCAL_WRITE);
  CHECK(mr != NULL && mr->lkey == kKey);
  CHECK(ibv_dereg_mr(mr) == 0 && ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
}

static void be_a_child(struct ibv_context* ours) {
  struct ibv_device_attr attr;
  CHECK(ibv_query_device(ours, &attr) == EPERM);
  CHECK(ibv_alloc_pd(ours) == NULL && errno == EPERM);
  int count = 0;
  struct ibv_device** const list = ibv_get_device_list(&count);
  CHECK(list != NULL && count == 1 && strcmp(ibv_get_device_name(list[0]), "real0") == 0);
  use_real(list[0]);
  ibv_free_device_list(list);
  _exit(0); /* no exit handlers: only the parent checks for leaks */
}

int main(void) {
  int count = 0;
  struct ibv_device** const list = ibv_get_device_list(&count);
  CHECK(list != NULL && count == 2 && list[2] == NULL);
  CHECK(strcmp(ibv_get_device_name(list[0]), "real0") == 0 && ibv_get_device_guid(list[0]) == 0x11);
  CHECK(strcmp(ibv_get_device_name(list[1]), "weft0") == 0 && ibv_get_device_guid(list[1]) != 0x11);
  use_real(list[0]);

  struct ibv_context* const ours = ibv_open_device(list[1]);
  struct ibv_device_attr attr;
  CHECK(ours != NULL && ibv_query_device(ours, &attr) == 0 && attr.max_qp != kMaxQp);
  struct ibv_pd* const pd = ibv_alloc_pd(ours);
  struct ibv_mr* const mr = (ibv_reg_mr)(pd, bytes, sizeof(bytes), IBV_ACCESS_LOCAL_WRITE);
  CHECK(mr != NULL && mr->lkey != kKey);
  /* A NIC without MRC. */
  struct ibv_context* const real = ibv_open_device(list[0]);
  CHECK(mrc_create_context(real, NULL) == NULL);

  const pid_t child = fork();
  if (child == 0) be_a_child(ours);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);

  CHECK(ibv_close_device(real) == 0);
  CHECK(ibv_dereg_mr(mr) == 0 && ibv_dealloc_pd(pd) == 0 && ibv_close_device(ours) == 0);
  ibv_free_device_list(list);
  return 0;
}
