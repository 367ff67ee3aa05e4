/* The application API of MRC: contexts, completion queues, QPs, and their two kinds of write.
 *
 * Devices, protection domains and memory come from libibverbs; an mrc_context is made on top of an
 * ibv_context and is the parent of everything else here. The objects are opaque. A QP uses EV and
 * CC profiles that a controller set up earlier through mrc_ctl.h; numbers name them.
 *
 * How functions fail, always with errno set:
 *   [-1]    returns 0, or -1
 *   [NULL]  returns the object, or NULL
 *   [verbs] returns 0, or an errno value, as the corresponding ibv_ function does
 *
 * Names, values and layouts are those of OCP's mrc.h, API 1.0.1. For C99 and C++. Masks are int,
 * and bit 31 is written -0x7fffffff - 1, because 1 << 31 does not fit an int in C99. */
#ifndef _MRC_API_H_
#define _MRC_API_H_

#include <infiniband/verbs.h>
#include <stdint.h>

#include "mrc_api_ver.h"

/* In C++ no function of this header throws. */
#ifndef MRC_NOEXCEPT
#if defined(__cplusplus) && __cplusplus >= 201103L
#define MRC_NOEXCEPT noexcept
#else
#define MRC_NOEXCEPT
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Size of each vendor_cfg in bytes; the vendor defines their meaning. */
#define MRC_MAX_VENDOR_CFG_SIZE 128

/* ---- Versions and devices ---- */

/* Versions of the protocol on the wire. A device reports all supported versions as one bitmap. A QP
 * requests one bit, or VERSION_0, which leaves the choice to the device. */
enum mrc_protocol_version {
  MRC_PROTOCOL_VERSION_0 = 0,
  MRC_PROTOCOL_VERSION_1 = 1 << 0,
};

struct mrc_context;
struct mrc_qp_hint;
struct mrc_qp;
struct mrc_cq;
struct mrc_comp_channel;

enum mrc_device_cap {
  MRC_DEVICE_CAP_TRIM_NACK = 1 << 0,   /* as responder, answers trimmed packets with a NACK */
  MRC_DEVICE_CAP_DYNAMIC_MPR = 1 << 1, /* a QP's window may change while it runs */
  MRC_DEVICE_CAP_SVC_TIME = 1 << 2,    /* as responder, reports the service time of an answer */
};

struct mrc_device_attr {
  uint32_t mrc_protocol_version; /* bits of enum mrc_protocol_version; 0: the device chooses */

  struct {
    uint16_t max_wimm;      /* largest number of immediates in flight of a QP, as requestor */
    uint16_t max_wimm_dest; /* the same, as responder */
  } wimm_attr;

  struct {
    uint8_t max_mpr;        /* largest window of a QP in either role, in 128 PSNs */
    uint8_t mpr_resolution; /* granularity of windows, in 128 PSNs */
  } mpr_attr;

  struct {
    uint32_t max_qp_hint; /* largest number of hints at one time */
  } qp_attr;

  uint32_t cap; /* bits of enum mrc_device_cap */
};

/* The capabilities of the device. *supported is 0 if the device has no MRC; `attr` is then
 * meaningless. [-1] The shorter function is for programs of API 1.0.0 and behaves as in that
 * version. */
#if MRC_API_VER_USED >= MRC_API_VER(1, 0, 1)
int mrc_query_device_ex(struct ibv_context* context, struct mrc_context* mcontext,
                        struct mrc_device_attr* attr, int* supported) MRC_NOEXCEPT;
#endif
int mrc_query_device(struct ibv_context* context, struct mrc_device_attr* attr,
                     int* supported) MRC_NOEXCEPT;

/* The newest and oldest version that the library supports, of this API and of the vendor's
 * additions. Needs no context, so that a program can query them before it creates one. */
void mrc_query_version(uint32_t* current_version, uint32_t* last_supported_version,
                       uint32_t* vendor_version,
                       uint32_t* last_supported_vendor_version) MRC_NOEXCEPT;

/* The versions for which a program was compiled; 0 is unspecified, and the library uses its newest
 * version. */
struct mrc_context_attr {
  uint32_t mrc_api_version_used;
  uint32_t mrc_vendor_api_version_used;
};

/* A context on a verbs device; `context_attr` may be NULL. The library keeps no state outside its
 * contexts, so that several users in one process do not interfere. EBUSY: only one process at a
 * time can use the device, and another one uses it. [NULL] */
struct mrc_context* mrc_create_context(struct ibv_context* vcontext,
                                       struct mrc_context_attr* context_attr) MRC_NOEXCEPT;

/* EBUSY while an object of the context exists. [-1] */
int mrc_destroy_context(struct mrc_context* mrc_ctx) MRC_NOEXCEPT;

/* ---- Completions ---- */

/* A channel wakes a sleeping program when one of its CQs has an event. [verbs] */
int mrc_create_comp_channel(struct mrc_context* mrc_ctx,
                            struct mrc_comp_channel** channel) MRC_NOEXCEPT;

/* The channel's file descriptor, for poll() and similar calls; the channel still owns it. [-1] */
int mrc_get_comp_channel_fd(struct mrc_comp_channel* channel, int* fd) MRC_NOEXCEPT;

/* EBUSY while a CQ uses the channel. [verbs] */
int mrc_destroy_comp_channel(struct mrc_comp_channel* channel) MRC_NOEXCEPT;

/* A CQ of at least `cqe` entries; `channel` may be NULL. [NULL] */
struct mrc_cq* mrc_create_cq(struct mrc_context* mrc_ctx, int cqe, void* cq_context,
                             struct mrc_comp_channel* channel, int comp_vector) MRC_NOEXCEPT;

/* Takes up to `num_entries` completions and returns their number; fewer than num_entries means that
 * the CQ is now empty. -1 on failure. */
int mrc_poll_cq(struct mrc_cq* cq, int num_entries, struct ibv_wc* wc) MRC_NOEXCEPT;

/* Waits until every event that mrc_get_cq_event returned has been acknowledged. [verbs] */
int mrc_destroy_cq(struct mrc_cq* cq) MRC_NOEXCEPT;

/* ---- Hints: a description of the expected traffic ---- */

struct mrc_qp_hint_attr {
  int num_qps_per_peer; /* QPs with this hint that send to one peer's address at the same time */
  int num_send_peers;   /* number of peers' addresses to which they send at the same time */
  int num_remote_recv_peers; /* QPs of all hosts that send to that peer at that time: its incast */
  uint8_t vendor_cfg[MRC_MAX_VENDOR_CFG_SIZE];
};

enum mrc_qp_hint_attr_mask {
  MRC_QP_HINT_NUM_QPS_PER_PEER = 1 << 0,
  MRC_QP_HINT_NUM_SEND_PEERS = 1 << 1,
  MRC_QP_HINT_NUM_REMOTE_RECV_PEERS = 1 << 2,
  MRC_QP_HINT_VENDOR_CFG = -0x7fffffff - 1
};

struct mrc_qp_hint_init_attr {
  struct mrc_qp_hint_attr attr;
};

/* Any number of QPs may use a hint. A QP does not need a hint. [NULL] */
struct mrc_qp_hint* mrc_create_qp_hint(struct mrc_context* mrc_ctx,
                                       struct mrc_qp_hint_init_attr* init_attr) MRC_NOEXCEPT;

/* EBUSY while a QP uses the hint. [-1] */
int mrc_destroy_qp_hint(struct mrc_qp_hint* qp_hint) MRC_NOEXCEPT;

/* Reads, or sets, the attributes of the mask (enum mrc_qp_hint_attr_mask). EINVAL. [-1] */
int mrc_query_qp_hint(struct mrc_qp_hint* qp_hint, struct mrc_qp_hint_attr* qp_hint_attr,
                      int qp_hint_attr_mask) MRC_NOEXCEPT;
int mrc_modify_qp_hint(struct mrc_qp_hint* qp_hint, struct mrc_qp_hint_attr* qp_hint_attr,
                       int qp_hint_attr_mask) MRC_NOEXCEPT;

/* ---- QPs ---- */

struct mrc_qp_init_attr {
  void* qp_context;
  struct mrc_cq* send_cq;
  struct mrc_cq* recv_cq;
  struct ibv_qp_cap cap;
  int sq_sig_all;
  struct ibv_pd* pd;
  uint64_t send_ops_flags; /* bits of enum ibv_qp_create_send_ops_flags */
  enum mrc_protocol_version protocol_version;
};

/* A QP in state RESET. [NULL] */
struct mrc_qp* mrc_create_qp(struct mrc_context* mrc_ctx,
                             struct mrc_qp_init_attr* mrc_qp_attr) MRC_NOEXCEPT;

/* [verbs] */
int mrc_destroy_qp(struct mrc_qp* qp) MRC_NOEXCEPT;

/* The fields of mrc_qp_attr that a call uses, by the transition that accepts them:
 *   to INIT  HINT, EV_PROFILE_ID, CC_PROFILE_ID
 *   to RTR   MAX_WIMM_DEST, MPR_DEST, CAP
 *   to RTS   MAX_WIMM, MPR, RETRY_CNT, TIMEOUT */
enum mrc_qp_attr_mask {
  MRC_QP_MAX_WIMM = 1 << 0,
  MRC_QP_MAX_WIMM_DEST = 1 << 1,
  MRC_QP_MPR = 1 << 2,
  MRC_QP_MPR_DEST = 1 << 3,
  MRC_QP_TIMEOUT = 1 << 4,
  MRC_QP_EV_PROFILE_ID = 1 << 5,
  MRC_QP_CC_PROFILE_ID = 1 << 6,
  MRC_QP_HINT = 1 << 7,
  MRC_QP_RETRY_CNT = 1 << 8,
  MRC_QP_CAP = 1 << 9,
  MRC_QP_VENDOR_CFG = -0x7fffffff - 1
};

/* Agreements of the two ends of a QP, made out of band. */
enum mrc_qp_cap {
  MRC_QP_CAP_TRIM_NACK_DEST_UNSUPPORTED = 1 << 0, /* the peer sends no NACK for a trimmed packet */
  MRC_QP_CAP_DYNAMIC_MPR = 1 << 1, /* both roles; takes effect if the peer sets it too */
  MRC_QP_CAP_SVC_TIME_DEST_UNSUPPORTED = 1 << 2 /* the peer reports no service time */
};

struct mrc_qp_attr {
  struct {
    uint8_t mpr;      /* window as requestor, in 128 PSNs */
    uint8_t mpr_dest; /* window as responder */
  } mpr;

  struct {
    uint16_t max_wimm;      /* immediates in flight as requestor */
    uint16_t max_wimm_dest; /* as responder */
  } wimm;

  uint8_t timeout; /* retransmission timeout: 1.024 us * 2^timeout, at most 24 */

  struct { /* profiles of the device, by number */
    uint64_t ev_profile_id;
    uint64_t cc_profile_id;
  } profile;

  struct {
    uint8_t linear_cnt; /* retries after equal waits, at most 7 */
    uint8_t exp_cnt;    /* retries after doubled waits, at most 25; 25: for ever */
  } retry;

  struct mrc_qp_hint* qp_hint; /* NULL: none */
  uint32_t cap;                /* bits of enum mrc_qp_cap */
  uint8_t vendor_cfg[MRC_MAX_VENDOR_CFG_SIZE];
};

/* Reads the attributes of both masks and the attributes at creation; in any state. [verbs] */
int mrc_query_qp(struct mrc_qp* qp, struct ibv_qp_attr* vattr, int vattr_mask,
                 struct mrc_qp_attr* mrc_attr, int mrc_attr_mask,
                 struct mrc_qp_init_attr* init_attr) MRC_NOEXCEPT;

/* Changes a QP: its state through IBV_QP_STATE, its attributes through both masks. IBV_QP_CUR_STATE
 * is the state that the caller expects the QP to be in. The address vector's source GID is entry
 * sgid_index of the verbs device. [verbs]
 *
 * An MRC QP ignores these verbs attributes: PORT, TIMEOUT and RETRY_CNT (MRC has its own),
 * RNR_RETRY, MIN_RNR_TIMER, MAX_QP_RD_ATOMIC, MAX_DEST_RD_ATOMIC, ALT_PATH, PATH_MIG_STATE. */
int mrc_modify_qp(struct mrc_qp* qp, struct ibv_qp_attr* vattr, int vattr_mask,
                  struct mrc_qp_attr* mrc_attr, int mrc_attr_mask) MRC_NOEXCEPT;

/* The QP number, which the peer uses as destination; 24 bits. [-1] */
int mrc_get_qpn(struct mrc_qp* qp, uint32_t* qpn) MRC_NOEXCEPT;

/* Posts receives. Only writes with an immediate consume them. [-1] or [verbs]; *bad_wr is the first
 * request that was not accepted. */
int mrc_post_recv(struct mrc_qp* qp, struct ibv_recv_wr* wr,
                  struct ibv_recv_wr** bad_wr) MRC_NOEXCEPT;

/* Posts RDMA writes, with or without an immediate; MRC has no other operation. [verbs]; *bad_wr as
 * above. */
int mrc_post_send(struct mrc_qp* qp, struct ibv_send_wr* wr,
                  struct ibv_send_wr** bad_wr) MRC_NOEXCEPT;

/* ---- Events ---- */

struct mrc_async_event {
  union { /* event_type selects the member, as in verbs */
    struct mrc_cq* cq;
    struct mrc_qp* qp;
    int port_num;
  } element;
  enum ibv_event_type event_type;
};

/* The next event of the context. The program must acknowledge it after handling it. [verbs] */
int mrc_get_async_event(struct mrc_context* mrc_ctx, struct mrc_async_event* event) MRC_NOEXCEPT;
void mrc_ack_async_event(struct mrc_async_event* event) MRC_NOEXCEPT;

/* Requests one event on the CQ's channel at its next completion, or at its next solicited
 * completion. [verbs] */
int mrc_req_notify_cq(struct mrc_cq* cq, int solicited_only) MRC_NOEXCEPT;

/* The next event of a channel: its CQ, and the cq_context of the CQ's creation. [-1] */
int mrc_get_cq_event(struct mrc_comp_channel* channel, struct mrc_cq** cq,
                     void** cq_context) MRC_NOEXCEPT;

/* Acknowledges `nevents` events of mrc_get_cq_event; several at a time are cheaper. */
void mrc_ack_cq_events(struct mrc_cq* cq, unsigned int nevents) MRC_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* _MRC_API_H_ */
