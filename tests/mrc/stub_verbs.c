/* A fake libibverbs with one device, `real0`, instead of a NIC: calls that lib_mrc.so passes on arrive here. The functions
   only return fixed names and numbers, by which a program recognises this library. */
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#undef ibv_reg_mr
#undef ibv_query_port

enum { kMaxQp = 77, kKey = 4711 };

static struct ibv_device real0 = {.node_type = IBV_NODE_CA, .name = "real0", .dev_name = "uverbs0"};

struct ibv_device** ibv_get_device_list(int* count) {
  struct ibv_device** const list = calloc(2, sizeof(*list));
  list[0] = &real0;
  if (count != NULL) *count = 1;
  return list;
}

void ibv_free_device_list(struct ibv_device** list) {
  if (list[0] != &real0 || list[1] != NULL) abort(); /* not our list */
  free(list);
}

__be64 ibv_get_device_guid(struct ibv_device* device) { return device == &real0 ? 0x11 : 0; }

struct ibv_context* ibv_open_device(struct ibv_device* device) {
  struct verbs_context* const whole = calloc(1, sizeof(*whole));
  whole->context.device = device;
  return &whole->context;
}

int ibv_close_device(struct ibv_context* context) {
  free((char*)context - offsetof(struct verbs_context, context));
  return 0;
}

int ibv_query_device(struct ibv_context* context, struct ibv_device_attr* attr) {
  (void)context;
  memset(attr, 0, sizeof(*attr));
  attr->max_qp = kMaxQp;
  return 0;
}

struct ibv_pd* ibv_alloc_pd(struct ibv_context* context) {
  struct ibv_pd* const pd = calloc(1, sizeof(*pd));
  pd->context = context;
  return pd;
}

int ibv_dealloc_pd(struct ibv_pd* pd) {
  free(pd);
  return 0;
}

struct ibv_mr* ibv_reg_mr(struct ibv_pd* pd, void* addr, size_t length, int access) {
  (void)access;
  struct ibv_mr* const mr = calloc(1, sizeof(*mr));
  *mr = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = addr, .length = length, .lkey = kKey};
  return mr;
}

int ibv_dereg_mr(struct ibv_mr* mr) {
  free(mr);
  return 0;
}
