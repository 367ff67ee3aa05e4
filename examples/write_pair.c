/* Two processes with MRC between them: one writes eight messages into the memory of the other, each
 * with an immediate that holds its number; the other checks every byte. C99, mrc.h and verbs.
 *
 *   write_pair PORT          the receiver: waits on that TCP port
 *   write_pair PORT HOST     the sender: finds the receiver there
 *
 * TCP carries only the values that the ends must exchange before they connect. Exit status: 0, or 1
 * with one line that names the failed step, or 2 for misuse. README.md says how to build and run
 * it. */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <errno.h>
#include <mrc/mrc.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGES = 8, SIZE = 1 << 20, GID_INDEX = 3, SILENCE_S = 60 };
enum { ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };

/* The values that the ends exchange; both have the same byte order here. */
struct end {
  union ibv_gid gid; /* GID of any port of the device */
  uint64_t memory;   /* address and key of the memory that the peer may write */
  uint32_t rkey, qpn, psn;
};

static void fail(const char* what, const char* why) {
  fprintf(stderr, "write_pair: %s: %s\n", what, why);
  exit(1);
}
static void must(int held, const char* what) {
  if (!held) fail(what, strerror(errno));
}

/* A TCP connection to `host`, or without `host` from the first peer that connects. */
static int connect_tcp(const char* port, const char* host) {
  const struct addrinfo hints = {
      .ai_flags = AI_PASSIVE, .ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
  struct addrinfo* at = NULL;
  const int yes = 1, unknown = getaddrinfo(host, port, &hints, &at);
  int fd, line;
  if (unknown) fail(host ? host : port, gai_strerror(unknown));
  line = fd = socket(at->ai_family, at->ai_socktype, 0);
  must(fd >= 0, "socket");
  if (host) {
    must(connect(fd, at->ai_addr, at->ai_addrlen) == 0, host);
  } else {
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    must(bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, 1) == 0, "listen");
    must((line = accept(fd, NULL, NULL)) >= 0, "accept");
    close(fd);
  }
  freeaddrinfo(at);
  return line;
}

/* Sends `ours` and receives `theirs`, so each end also waits for the other. */
static void exchange(int line, const void* ours, void* theirs, size_t size) {
  must(send(line, ours, size, MSG_NOSIGNAL) == (ssize_t)size, "send");
  errno = ECONNRESET;
  must(recv(line, theirs, size, MSG_WAITALL) == (ssize_t)size, "the other end is gone");
}

/* The first device with MRC. Without any configuration this is weft0, on the loopback. */
static struct ibv_context* open_device(void) {
  struct ibv_device** const list = ibv_get_device_list(NULL);
  struct ibv_context* verbs = NULL;
  struct mrc_device_attr attr;
  int i, has_mrc = 0;
  must(list != NULL, "ibv_get_device_list");
  for (i = 0; list[i] != NULL && !has_mrc; ++i) {
    verbs = ibv_open_device(list[i]);
    must(verbs != NULL && mrc_query_device(verbs, &attr, &has_mrc) == 0, "ibv_open_device");
    if (!has_mrc) ibv_close_device(verbs);
  }
  ibv_free_device_list(list);
  if (!has_mrc) fail("mrc_query_device", "no device has MRC");
  return verbs;
}

/* The QP goes through the states of verbs: INIT (rights of the peer), RTR (address of the peer),
 * RTS (may send). */
static void connect_qp(struct mrc_qp* qp, const struct end* us, const struct end* peer) {
  const int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  const int to_rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  const int to_rts = IBV_QP_STATE | IBV_QP_SQ_PSN;
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS};
  must(mrc_modify_qp(qp, &attr, to_init, NULL, 0) == 0, "mrc_modify_qp to INIT");
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_4096; /* upper limit; packets are smaller if this does not fit */
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.dgid = peer->gid;
  attr.ah_attr.grh.sgid_index = GID_INDEX;
  attr.dest_qp_num = peer->qpn;
  attr.rq_psn = peer->psn;
  must(mrc_modify_qp(qp, &attr, to_rtr, NULL, 0) == 0, "mrc_modify_qp to RTR");
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = us->psn;
  must(mrc_modify_qp(qp, &attr, to_rts, NULL, 0) == 0, "mrc_modify_qp to RTS");
}

static void post_write(struct mrc_qp* qp, const struct ibv_mr* mr, const struct end* peer,
                       uint32_t message) {
  const size_t at = (size_t)message * SIZE;
  struct ibv_sge piece = {.addr = (uintptr_t)mr->addr + at, .length = SIZE, .lkey = mr->lkey};
  struct ibv_send_wr work = {.wr_id = message, .sg_list = &piece, .num_sge = 1}, *bad = NULL;
  work.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  work.send_flags = IBV_SEND_SIGNALED; /* the sender gets a completion too */
  work.imm_data = htonl(message);
  work.wr.rdma.remote_addr = peer->memory + at;
  work.wr.rdma.rkey = peer->rkey;
  must(mrc_post_send(qp, &work, &bad) == 0, "mrc_post_send");
}

/* Polls until the next completion, which must be successful. */
static struct ibv_wc wait_completion(struct mrc_cq* cq) {
  const time_t until = time(NULL) + SILENCE_S;
  struct ibv_wc wc;
  int count;
  while ((count = mrc_poll_cq(cq, 1, &wc)) == 0) {
    if (time(NULL) > until) fail("mrc_poll_cq", "no completion");
  }
  must(count == 1, "mrc_poll_cq");
  if (wc.status != IBV_WC_SUCCESS) fail("a completion", "not IBV_WC_SUCCESS");
  return wc;
}

/* The value of byte `i` of the memory after all messages have arrived. */
static uint8_t pattern(size_t i) { return (uint8_t)(i * 31 + i / SIZE + 1); }

static void look_at(const uint8_t* memory, uint32_t message) {
  size_t i;
  if (message >= MESSAGES) fail("an immediate", "no message has this number");
  for (i = (size_t)message * SIZE; i < ((size_t)message + 1) * SIZE; ++i) {
    if (memory[i] != pattern(i)) fail("a message", "not what was sent");
  }
}

int main(int count, char** words) {
  const int is_sender = count == 3;
  uint8_t* const memory = calloc(MESSAGES, SIZE);
  struct end us = {.memory = (uintptr_t)memory}, peer;
  uint32_t i;
  int line;
  if (count != 2 && count != 3) return fprintf(stderr, "usage: write_pair PORT [HOST]\n"), 2;
  if (atoi(words[1]) < 1 || atoi(words[1]) > 65535)
    return fprintf(stderr, "write_pair: port %s: expected 1 to 65535\n", words[1]), 2;
  must(memory != NULL, "calloc");
  for (i = 0; i < MESSAGES * SIZE && is_sender; ++i) memory[i] = pattern(i);

  /* The device and its objects: a domain, memory, a completion queue, a QP. */
  struct ibv_context* const verbs = open_device();
  struct mrc_context* const context = mrc_create_context(verbs, NULL);
  must(context != NULL, "mrc_create_context");
  struct ibv_pd* const pd = ibv_alloc_pd(verbs);
  must(pd != NULL, "ibv_alloc_pd");
  struct ibv_mr* const mr = ibv_reg_mr(pd, memory, MESSAGES * SIZE, ACCESS);
  must(mr != NULL, "ibv_reg_mr");
  struct mrc_cq* const cq = mrc_create_cq(context, 2 * MESSAGES, NULL, NULL, 0);
  must(cq != NULL, "mrc_create_cq");
  struct mrc_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .pd = pd};
  init.cap.max_send_wr = init.cap.max_recv_wr = MESSAGES;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  struct mrc_qp* const qp = mrc_create_qp(context, &init);
  must(qp != NULL, "mrc_create_qp");

  /* The ends exchange their values, and each connects its QP. */
  us.rkey = mr->rkey;
  us.psn = (uint32_t)getpid() & 0xffffff; /* any 24 bits */
  must(ibv_query_gid(verbs, 1, GID_INDEX, &us.gid) == 0, "ibv_query_gid");
  must(mrc_get_qpn(qp, &us.qpn) == 0, "mrc_get_qpn");
  line = connect_tcp(words[1], is_sender ? words[2] : NULL);
  exchange(line, &us, &peer, sizeof(us));
  connect_qp(qp, &us, &peer);
  for (i = 0; i < MESSAGES && !is_sender; ++i) { /* each immediate consumes a receive */
    struct ibv_recv_wr work = {.wr_id = i}, *bad = NULL;
    must(mrc_post_recv(qp, &work, &bad) == 0, "mrc_post_recv");
  }
  exchange(line, &us, &peer, sizeof(us)); /* both are ready */

  /* Each arrived message gives a completion at the sender and, with its number, at the receiver. */
  for (i = 0; i < MESSAGES && is_sender; ++i) post_write(qp, mr, &peer, i);
  for (i = 0; i < MESSAGES; ++i) {
    const struct ibv_wc wc = wait_completion(cq);
    if (!is_sender) look_at(memory, ntohl(wc.imm_data));
  }
  printf("%d messages of %d bytes %s\n", MESSAGES, SIZE, is_sender ? "written" : "have come");
  /* Neither end exits before the other has its completions. */
  exchange(line, &us, &peer, sizeof(us));

  must(mrc_destroy_qp(qp) == 0, "mrc_destroy_qp");
  must(mrc_destroy_cq(cq) == 0, "mrc_destroy_cq");
  must(ibv_dereg_mr(mr) == 0 && ibv_dealloc_pd(pd) == 0, "ibv_dereg_mr");
  must(mrc_destroy_context(context) == 0, "mrc_destroy_context");
  must(ibv_close_device(verbs) == 0, "ibv_close_device");
  free(memory);
  close(line);
  return 0;
}
