/* Every message differs, and the receiver checks every byte. OCP's benchmark always sends the same
 * pattern, so it cannot detect lost or late messages. C99, uses only mrc.h and verbs.
 *
 *   pattern_pair PORT SECONDS MESSAGES_MAX SIZE_MAX          the receiver; waits for the other
 *   pattern_pair PORT SECONDS MESSAGES_MAX SIZE_MAX HOST     the sender
 *
 * Message i is written with immediate i into slot i mod SLOTS of the receiver. Sizes are the powers
 * of two from 1 to SIZE_MAX in turn, and each message begins at another offset of its slot. When
 * the immediate arrives, the receiver compares the whole slot, so that a wrong byte beside the
 * message is also found. Then it returns the slot to the sender with an immediate. The sender ends
 * after SECONDS or MESSAGES_MAX. Exit status: 0 if all messages arrived as sent; 1 with one line if
 * not, or if a call failed. */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "mrc.h"

#define SLOTS 8
#define MARGIN 64        /* unused bytes of a slot around its message */
#define OFFSETS 61       /* number of different message offsets inside a slot */
#define LAST 0xffffffffu /* an immediate without a message: the end of the run */
#define SILENCE_S 40     /* longer than the 17 s after which a QP fails */

struct wire {
  union ibv_gid gid;
  uint64_t at;
  uint32_t qpn, psn, rkey, size_max;
};

static struct {
  struct ibv_context* verbs;
  struct mrc_context* context;
  struct ibv_pd* pd;
  struct ibv_mr* mr;
  struct mrc_cq* cq;
  struct mrc_qp* qp;
  uint8_t *memory, *shadow; /* shadow: the expected bytes of the slots */
  size_t slot_size;
  int line;
  struct wire us, peer;
} end;

static void fail(const char* what) {
  fprintf(stderr, "pattern_pair: %s: %s\n", what, strerror(errno));
  exit(1);
}
static void check(int held, const char* what) {
  if (!held) fail(what);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --- the bytes of messages
 * ---------------------------------------------------------------------------- */

static uint32_t size_of(uint32_t message, uint32_t size_max) {
  uint32_t sizes = 1;
  while ((1u << sizes) <= size_max) ++sizes;
  return 1u << (message % sizes);
}
static size_t offset_of(uint32_t message) { return MARGIN + message * 7 % OFFSETS; }

/* Eight bytes at a time of a generator; its seed is the number of the message. */
static void fill(uint8_t* at, uint32_t size, uint32_t message) {
  uint64_t state = ((uint64_t)message + 1) * 0x9e3779b97f4a7c15u;
  uint32_t i;
  for (i = 0; i < size; i += 8) {
    uint64_t word;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    word = state * 0x2545f4914f6cdd1du;
    memcpy(at + i, &word, size - i < 8 ? size - i : 8);
  }
}

/* --- the TCP connection to the other end
 * --------------------------------------------------------------------------- */

static void find_each_other(const char* port, const char* host) {
  struct addrinfo hints, *found = NULL;
  int try, yes = 1, fd = -1;
  const struct timeval silence = {SILENCE_S, 0};
  memset(&hints, 0, sizeof(hints));
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_family = AF_INET;
  hints.ai_flags = host == NULL ? AI_PASSIVE : 0;
  check(getaddrinfo(host, port, &hints, &found) == 0, "getaddrinfo");
  if (host == NULL) {
    fd = socket(found->ai_family, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    check(bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, 1) == 0, "listen");
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof(silence));
    end.line = accept(fd, NULL, NULL);
    close(fd);
  } else {
    for (try = 0; try < 200; ++try) {
      const struct timespec pause = {0, 50000000};
      fd = socket(found->ai_family, SOCK_STREAM, 0);
      if (connect(fd, found->ai_addr, found->ai_addrlen) == 0) break;
      close(fd);
      fd = -1;
      nanosleep(&pause, NULL);
    }
    end.line = fd;
  }
  check(end.line >= 0, "the other end does not come");
  setsockopt(end.line, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof(silence));
  freeaddrinfo(found);
}

static void swap_words(const void* ours, void* theirs, size_t size) {
  check(write(end.line, ours, size) == (ssize_t)size, "write");
  check(recv(end.line, theirs, size, MSG_WAITALL) == (ssize_t)size, "the other end says nothing");
}

/* --- the QP ---------------------------------------------------------------------------------- */

static void open_device(uint32_t size_max) {
  struct ibv_device **list, **device;
  struct mrc_qp_init_attr init;
  list = ibv_get_device_list(NULL);
  check(list != NULL, "ibv_get_device_list");
  for (device = list; *device != NULL && end.verbs == NULL; ++device) {
    if (strcmp(ibv_get_device_name(*device), "weft0") == 0) end.verbs = ibv_open_device(*device);
  }
  ibv_free_device_list(list);
  check(end.verbs != NULL, "the device weft0 does not open");
  end.context = mrc_create_context(end.verbs, NULL);
  check(end.context != NULL, "mrc_create_context");
  end.pd = ibv_alloc_pd(end.verbs);
  check(end.pd != NULL, "ibv_alloc_pd");
  end.slot_size = 2 * MARGIN + OFFSETS + size_max;
  end.memory = calloc(SLOTS, end.slot_size);
  end.shadow = calloc(SLOTS, end.slot_size);
  check(end.memory != NULL && end.shadow != NULL, "calloc");
  end.mr = ibv_reg_mr(end.pd, end.memory, SLOTS * end.slot_size,
                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  check(end.mr != NULL, "ibv_reg_mr");
  end.cq = mrc_create_cq(end.context, 8 * SLOTS, NULL, NULL, 0);
  check(end.cq != NULL, "mrc_create_cq");
  memset(&init, 0, sizeof(init));
  init.send_cq = init.recv_cq = end.cq;
  init.pd = end.pd;
  init.cap.max_send_wr = init.cap.max_recv_wr = 2 * SLOTS;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  end.qp = mrc_create_qp(end.context, &init);
  check(end.qp != NULL, "mrc_create_qp");
}

static void post_receive(void) {
  struct ibv_recv_wr work, *bad = NULL;
  memset(&work, 0, sizeof(work));
  check(mrc_post_recv(end.qp, &work, &bad) == 0, "mrc_post_recv");
}

static void connect_qp(uint32_t size_max) {
  struct ibv_qp_attr attr;
  int i;
  check(ibv_query_gid(end.verbs, 1, 3, &end.us.gid) == 0, "ibv_query_gid");
  check(mrc_get_qpn(end.qp, &end.us.qpn) == 0, "mrc_get_qpn");
  end.us.psn = (uint32_t)getpid() & 0xffffff;
  end.us.rkey = end.mr->rkey;
  end.us.at = (uintptr_t)end.memory;
  end.us.size_max = size_max;
  swap_words(&end.us, &end.peer, sizeof(end.us));
  errno = EINVAL;
  check(end.peer.size_max == size_max, "the two ends have different SIZE_MAX");
  memset(&attr, 0, sizeof(attr));
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  check(mrc_modify_qp(end.qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, NULL,
                      0) == 0,
        "mrc_modify_qp to INIT");
  for (i = 0; i < 2 * SLOTS; ++i) post_receive();
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_4096;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.grh.dgid = end.peer.gid;
  attr.ah_attr.grh.sgid_index = 3;
  attr.ah_attr.port_num = 1;
  attr.dest_qp_num = end.peer.qpn;
  attr.rq_psn = end.peer.psn;
  check(mrc_modify_qp(end.qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
                      NULL, 0) == 0,
        "mrc_modify_qp to RTR");
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = end.us.psn;
  check(mrc_modify_qp(end.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN, NULL, 0) == 0,
        "mrc_modify_qp to RTS");
  swap_words(&end.us.qpn, &end.peer.qpn, sizeof(end.us.qpn)); /* both ends can receive packets now */
}

static void post_write(size_t at, uint32_t size, uint32_t immediate) {
  struct ibv_sge piece;
  struct ibv_send_wr work, *bad = NULL;
  memset(&work, 0, sizeof(work));
  piece.addr = (uintptr_t)end.memory + at;
  piece.length = size;
  piece.lkey = end.mr->lkey;
  work.sg_list = &piece;
  work.num_sge = size > 0 ? 1 : 0;
  work.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  work.imm_data = htonl(immediate);
  work.send_flags = IBV_SEND_SIGNALED;
  work.wr.rdma.remote_addr = end.peer.at + at;
  work.wr.rdma.rkey = end.peer.rkey;
  check(mrc_post_send(end.qp, &work, &bad) == 0, "mrc_post_send");
}

/* The next completion: 1 and its immediate for a receive, 0 for a completed write. */
static int next(uint32_t* immediate) {
  struct ibv_wc wc;
  const double until = now() + SILENCE_S;
  int count;
  do {
    count = mrc_poll_cq(end.cq, 1, &wc);
    errno = ETIMEDOUT;
    check(count != 0 || now() < until, "no completion");
  } while (count == 0);
  check(count == 1, "mrc_poll_cq");
  errno = EIO;
  check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
  if (wc.opcode != IBV_WC_RECV_RDMA_WITH_IMM) return 0;
  *immediate = ntohl(wc.imm_data);
  post_receive();
  return 1;
}

/* --- both ends ------------------------------------------------------------------------------- */

static void look_at(uint32_t message, uint32_t size_max) {
  uint8_t* const slot = end.memory + message % SLOTS * end.slot_size;
  uint8_t* const wanted = end.shadow + message % SLOTS * end.slot_size;
  const uint32_t size = size_of(message, size_max);
  size_t i;
  fill(wanted + offset_of(message), size, message);
  if (memcmp(slot, wanted, end.slot_size) == 0) return;
  for (i = 0; slot[i] == wanted[i]; ++i) {
  }
  fprintf(stderr, "pattern_pair: message %u of %u bytes: at %ld of it is %02x, sent was %02x\n",
          message, size, (long)i - (long)offset_of(message), slot[i], wanted[i]);
  exit(1);
}

static void receive_all(uint32_t size_max) {
  uint32_t expected = 0, immediate = 0;
  for (;;) {
    if (!next(&immediate)) continue;
    if (immediate == LAST) break;
    errno = EPROTO;
    check(immediate == expected, "an immediate came out of turn");
    look_at(immediate, size_max);
    post_write(0, 0, immediate); /* returns the slot to the sender */
    ++expected;
  }
  printf("{\"messages\": %u, \"verified\": true}\n", expected);
}

static void send_all(double seconds, uint32_t messages_max, uint32_t size_max) {
  const double start = now();
  uint32_t sent = 0, freed = 0, immediate = 0, pending = 0;
  uint64_t bytes = 0;
  double came = start, pause = 0;
  while (freed < sent || (sent < messages_max && now() - start < seconds)) {
    while (sent < messages_max && sent - freed < SLOTS && pending < SLOTS &&
           now() - start < seconds) {
      const size_t at = sent % SLOTS * end.slot_size + offset_of(sent);
      const uint32_t size = size_of(sent, size_max);
      fill(end.memory + at, size, sent);
      post_write(at, size, sent);
      bytes += size;
      ++sent;
      ++pending;
    }
    if (next(&immediate)) {
      errno = EPROTO;
      check(immediate == freed, "an immediate came out of turn");
      ++freed;
    } else {
      --pending;
    }
    if (now() - came > pause) pause = now() - came;
    came = now();
  }
  post_write(0, 0, LAST);
  for (++pending; pending > 0;) pending -= next(&immediate) ? 0 : 1;
  printf("{\"messages\": %u, \"bytes\": %llu, \"seconds\": %.3f, \"pause_ms\": %.1f}\n", sent,
         (unsigned long long)bytes, now() - start, pause * 1e3);
}

int main(int count, char** words) {
  uint32_t size_max;
  char over = 0;
  if (count != 5 && count != 6) {
    fprintf(stderr, "usage: pattern_pair PORT SECONDS MESSAGES_MAX SIZE_MAX [HOST]\n");
    return 2;
  }
  size_max = (uint32_t)strtoul(words[4], NULL, 10);
  open_device(size_max);
  find_each_other(words[1], count == 6 ? words[5] : NULL);
  connect_qp(size_max);
  if (count == 6) {
    send_all(atof(words[2]), (uint32_t)strtoul(words[3], NULL, 10), size_max);
  } else {
    receive_all(size_max);
  }
  swap_words(&over, &over, 1); /* neither end exits before the other has its completions */
  check(mrc_destroy_qp(end.qp) == 0, "mrc_destroy_qp");
  check(mrc_destroy_cq(end.cq) == 0, "mrc_destroy_cq");
  check(ibv_dereg_mr(end.mr) == 0 && ibv_dealloc_pd(end.pd) == 0, "ibv_dereg_mr");
  check(mrc_destroy_context(end.context) == 0, "mrc_destroy_context");
  check(ibv_close_device(end.verbs) == 0, "ibv_close_device");
  free(end.memory);
  free(end.shadow);
  close(end.line);
  return 0;
}
