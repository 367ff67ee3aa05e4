/* The controller API of MRC: the paths of a device, spreading over them, and congestion control.
 *
 * Profiles belong to the device, not to a process: they always exist, have numbers from 0, and
 * outlive the process that changed them. Applications learn the numbers out of band. A controller
 * uses an ordinary mrc_context and needs CAP_NET_ADMIN for changes.
 *
 * The only transitions of a profile are INIT -> OFFLINE -> ONLINE -> OFFLINE -> INIT. A profile in
 * INIT is empty, in OFFLINE it is being configured, and in ONLINE it is in use.
 *
 * Unless its comment says otherwise, a function returns 0, or -1 with errno: EINVAL (bad argument),
 * EPERM (no privilege), EIO (device error), and the errors named at the function.
 *
 * Names, values and layouts are those of OCP's mrc_ctl.h, API 1.0.1. For C99 and C++. */
#ifndef _MRC_CTL_API_H_
#define _MRC_CTL_API_H_

#include <infiniband/verbs.h>
#include <stdint.h>

#include "mrc.h"
#include "mrc_ctl_api_ver.h"

#ifndef MRC_NOEXCEPT /* mrc.h is from another implementation */
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
#define MRC_CTL_MAX_VENDOR_CFG_SIZE 128

/* Size of an EV in bytes. */
#define MRC_CTL_EV_MAX_BYTES 32

enum mrc_ctl_protocol_version {
  MRC_CTL_PROTOCOL_VERSION_0 = 0, /* unspecified */
  MRC_CTL_PROTOCOL_VERSION_1 = 1 << 0,
};

enum mrc_ctl_profile_state {
  MRC_CTL_PROFILE_INIT,
  MRC_CTL_PROFILE_OFFLINE,
  MRC_CTL_PROFILE_ONLINE,
};

/* ---- The device ---- */

/* Optional features and limits of a device. */
enum mrc_ctl_attr_opt {
  /* EV profiles and CC profiles can also be changed while ONLINE. */
  MRC_CTL_OPT_CAP_EV_PROFILE_MODIFY_ONLINE = 1 << 0,
  MRC_CTL_OPT_CAP_CC_PROFILE_MODIFY_ONLINE = 1 << 1,
  /* The device reports EVs that change state. */
  MRC_CTL_OPT_CAP_EV_EVENT = 1 << 2,
  /* A limit: explicit EVs must be consecutive numbers, ev_count of them from the first. */
  MRC_CTL_OPT_CAP_EV_EXPLICIT_RANGE = 1 << 3,
  /* drop_count of an EV event is an exact count, not only 0 or 1. */
  MRC_CTL_OPT_CAP_EV_EVENT_PRECISE_DROP_CNT = 1 << 4,
  /* The device can send EV probes. */
  MRC_CTL_OPT_CAP_EP_OP_EV_PROBE = 1 << 5
};

struct mrc_ctl_device_attr {
  uint32_t mrc_ctl_protocol_version; /* bits of enum mrc_ctl_protocol_version; 0: device chooses */

  struct {
    uint32_t ev_max_fmt_profiles;  /* number of EV format profiles */
    uint32_t ev_max_profiles;      /* number of EV profiles */
    uint32_t ev_max_count;         /* EVs that all profiles together can hold */
    uint32_t ev_free_count;        /* how many of them are free */
    uint32_t ev_max_count_profile; /* EVs that one profile can hold */
    uint32_t ev_count_align;       /* an explicit profile's ev_count is a multiple of this */
    uint32_t ev_max_width;         /* significant bits of an EV; the fields of a profile must fit */
    uint32_t ev_fmt_mode_mask;     /* bits of enum mrc_ctl_ev_fmt_mode */
    uint32_t ev_mode_mask;         /* bits of enum mrc_ctl_ev_mode */
    uint32_t ev_op_max_entries;    /* entries of one EV operation; 0: no limit */
  } ev;

  struct {
    uint32_t cc_max_profiles; /* number of CC profiles */
    const char** algorithms;  /* names such as "uet-1.0-nscc", then NULL; owned by the library */
  } cc;

  uint32_t phy_port_mask; /* bit N: port N, as in ibv_query_port; ports count from 1 */
  uint32_t opt_attr;      /* bits of enum mrc_ctl_attr_opt */
};

/* The capabilities of the device. ev_free_count depends on the profiles, so query it after they are
 * configured. Also fails as ibv_query_device does. The shorter function is for programs of API
 * 1.0.0. */
#if MRC_CTL_API_VER_USED >= MRC_CTL_API_VER(1, 0, 1)
int mrc_ctl_query_device_ex(struct ibv_context* context, struct mrc_context* mcontext,
                            struct mrc_ctl_device_attr* ctl_attr, int* supported) MRC_NOEXCEPT;
#endif
int mrc_ctl_query_device(struct ibv_context* context,
                         struct mrc_ctl_device_attr* ctl_attr) MRC_NOEXCEPT;

/* As mrc_query_version, for this API. */
void mrc_ctl_query_version(uint32_t* current_version, uint32_t* last_supported_version,
                           uint32_t* vendor_version,
                           uint32_t* last_supported_vendor_version) MRC_NOEXCEPT;

/* ---- Ports ---- */

enum mrc_ctl_port_admin_state {
  MRC_CTL_PORT_ADMIN_DISABLED = 0,
  MRC_CTL_PORT_ADMIN_ENABLED = 1,
};

enum mrc_ctl_port_attr_mask {
  MRC_CTL_PORT_ADMIN_STATE = 1 << 0,
};

struct mrc_ctl_port_attr {
  enum mrc_ctl_port_admin_state port_admin_state; /* disabled: ibv_query_port says IBV_PORT_DOWN */
};

/* Reads, or sets, the administrative state of port `port_num` (from 1). */
int mrc_ctl_query_port(struct mrc_context* context, uint8_t port_num,
                       struct mrc_ctl_port_attr* attr, int attr_mask) MRC_NOEXCEPT;
int mrc_ctl_modify_port(struct mrc_context* context, uint8_t port_num,
                        struct mrc_ctl_port_attr* attr, int attr_mask) MRC_NOEXCEPT;

/* ---- EV format profiles: the places of an EV's bits in a packet ---- */

enum mrc_ctl_ev_fmt_mode {
  MRC_CTL_EV_FMT_MODE_STEV = 1 << 0, /* IPv6 flow label and UDP source port */
  MRC_CTL_EV_FMT_MODE_SRV6 = 1 << 1, /* uSIDs of an outer IPv6 header, perhaps with an SRH */
  MRC_CTL_EV_FMT_MODE_UDP = 1 << 2,  /* UDP source port only; IPv4 or IPv6 */
};

enum mrc_ctl_ev_fmt_op {
  MRC_CTL_EV_FMT_OP_MODIFY_FIELDS,
  MRC_CTL_EV_FMT_OP_QUERY_FIELDS,
};

enum mrc_ctl_ev_fmt_profile_attr_mask {
  MRC_CTL_EV_FMT_PROFILE_STATE = 1 << 0,
  MRC_CTL_EV_FMT_PROFILE_CUR_STATE = 1 << 1,
  MRC_CTL_EV_FMT_PROFILE_MODE = 1 << 2,
  MRC_CTL_EV_FMT_PROFILE_OP = 1 << 3,
  MRC_CTL_EV_FMT_VENDOR_CFG = -0x7fffffff - 1,
};

struct mrc_ctl_ev_fmt_field {
  uint8_t width; /* bits */
};

/* The fields, most significant first, form the whole EV as a packet carries it. */
struct mrc_ctl_ev_fmt_profile_attr {
  enum mrc_ctl_profile_state profile_state;     /* the state to go to */
  enum mrc_ctl_profile_state cur_profile_state; /* the state it is in */
  enum mrc_ctl_ev_fmt_mode ev_fmt_mode;
  struct {
    enum mrc_ctl_ev_fmt_op op;
    struct mrc_ctl_ev_fmt_field* fmt_fields;
    int fmt_field_count; /* in: length of fmt_fields; out: how many there are */
  } ev_fmt_op;
  uint8_t vendor_cfg[MRC_CTL_MAX_VENDOR_CFG_SIZE];
};

/* Changes a format profile. OFFLINE needs a MODE, ONLINE needs earlier MODIFY_FIELDS. In ONLINE the
 * only change is to OFFLINE. EBUSY: an EV profile that is ONLINE uses the format. E2BIG: the device
 * does not support such fields. */
int mrc_ctl_modify_ev_fmt_profile(struct mrc_context* mrc_ctx, uint64_t ev_fmt_profile_id,
                                  struct mrc_ctl_ev_fmt_profile_attr* attr,
                                  int attr_mask) MRC_NOEXCEPT;

/* Reads a format profile. QUERY_FIELDS fills fmt_fields; E2BIG if there are more fields, and
 * fmt_field_count is then their number. MODIFY_FIELDS is refused here. */
int mrc_ctl_query_ev_fmt_profile(struct mrc_context* mrc_ctx, uint64_t ev_fmt_profile_id,
                                 struct mrc_ctl_ev_fmt_profile_attr* attr,
                                 int attr_mask) MRC_NOEXCEPT;

/* ---- EVs ---- */

/* A string of bits, byte 0 and its highest bit first. STEV: the first 4 bytes. SRv6: 16 bytes of
 * destination address, then 16 of the one segment of an SRH. */
typedef uint8_t mrc_ctl_ev_t[MRC_CTL_EV_MAX_BYTES];

/* A path: an EV, and the port (from 1) that sends it. */
struct mrc_ctl_ev {
  mrc_ctl_ev_t val;
  uint8_t port;
};

/* The value of an explicit EV before the controller sets it: all zero. The macro is an expression
 * in C; the function also works in C++. */
static inline struct mrc_ctl_ev mrc_ctl_ev_unpopulated(void) MRC_NOEXCEPT {
  struct mrc_ctl_ev none = {{0}, 0};
  return none;
}
#ifdef __cplusplus
#define MRC_CTL_EV_UNPOPULATED (mrc_ctl_ev_unpopulated())
#else
#define MRC_CTL_EV_UNPOPULATED ((struct mrc_ctl_ev){.val = {0}, .port = 0})
#endif

enum mrc_ctl_ev_state {
  MRC_CTL_EV_GOOD = 1 << 0,
  MRC_CTL_EV_ASSUMED_BAD = 1 << 1, /* the device found it failing */
  MRC_CTL_EV_DENIED = 1 << 2,      /* the controller forbids it */
  MRC_CTL_EV_UNKNOWN = -0x7fffffff - 1
};

/* ---- EV profiles: the set of EVs of a QP ---- */

enum mrc_ctl_ev_mode {
  MRC_CTL_EV_MODE_AUTO = 1 << 0, /* the device chooses */
  MRC_CTL_EV_MODE_EXP = 1 << 1,  /* the controller sets each EV */
  MRC_CTL_EV_MODE_GEN = 1 << 2,  /* the device generates them from the fields */
};

enum mrc_ctl_ev_op {
  MRC_CTL_EV_OP_REPLACE_EV,
  MRC_CTL_EV_OP_MODIFY_EV_STATE,
  MRC_CTL_EV_OP_QUERY_EV_STATE,
  MRC_CTL_EV_OP_QUERY_EV_ARRAY,
};

enum mrc_ctl_ev_fields_op {
  MRC_CTL_EV_FIELDS_OP_MODIFY_FIELDS,
  MRC_CTL_EV_FIELDS_OP_QUERY_FIELDS,
};

enum mrc_ctl_ev_profile_attr_mask {
  MRC_CTL_EV_PROFILE_STATE = 1 << 0,
  MRC_CTL_EV_PROFILE_CUR_STATE = 1 << 1,
  MRC_CTL_EV_PROFILE_MODE = 1 << 2,
  MRC_CTL_EV_PROFILE_FMT_ID = 1 << 3,
  MRC_CTL_EV_PROFILE_COUNT = 1 << 4,
  MRC_CTL_EV_PROFILE_MIN_ACTIVE = 1 << 5,
  MRC_CTL_EV_PROFILE_EVENT_MASK = 1 << 6,
  MRC_CTL_EV_PROFILE_EV_OP = 1 << 7,
  MRC_CTL_EV_PROFILE_EV_FIELDS_OP = 1 << 8,
  MRC_CTL_EV_PROFILE_VENDOR_CFG = -0x7fffffff - 1,
};

/* How a field of a packet's EV is computed from the bits of a short EV. The field starts as
 * init_val. Each bit set in `mask`, highest first, takes the next bit of the EV. The result is as
 * wide as the format profile's field, zeros before it; the fields one after the other are the EV on
 * the wire. A fixed field has mask, min_val and max_val 0. REQUIRES init_val and mask inside
 * `width`, max_val inside the number of bits of mask. */
struct mrc_ctl_ev_field {
  uint32_t width;
  uint32_t init_val;
  uint32_t min_val; /* of the bits that the device generates, in mode GEN */
  uint32_t max_val;
  uint32_t mask;
};

enum mrc_ctl_ev_op_flags {
  MRC_CTL_EV_OP_F_ALL_COPIES = 1 << 0, /* every EV equal to `ev`, not just one of them */
};

/* One entry of an EV operation. Each operation reads (<) and writes (>) these fields:
 *   REPLACE_EV       <ev <ev_new <state <flags
 *   MODIFY_EV_STATE  <ev         <state <flags
 *   QUERY_EV_STATE   <ev         >state
 *   QUERY_EV_ARRAY   >ev         >state */
struct mrc_ctl_ev_op_entry {
  struct mrc_ctl_ev ev;
  struct mrc_ctl_ev ev_new;
  enum mrc_ctl_ev_state state;
  uint32_t flags; /* bits of enum mrc_ctl_ev_op_flags */
};

struct mrc_ctl_ev_profile_attr {
  enum mrc_ctl_profile_state profile_state;     /* the state to go to */
  enum mrc_ctl_profile_state cur_profile_state; /* the state it is in */
  enum mrc_ctl_ev_mode ev_mode;
  uint64_t ev_fmt_profile_id; /* not in mode AUTO */
  uint32_t ev_count;          /* set: requested number; query: actual number */
  uint32_t ev_min_active;     /* so many stay in use even if they are bad; at most ev_count */
  int ev_event_mask;          /* states that make an event: GOOD, ASSUMED_BAD */
  struct {
    enum mrc_ctl_ev_op op;
    struct mrc_ctl_ev_op_entry* entries;
    int entry_count; /* in: length of entries; out: how many there are */
  } ev_op;
  struct {
    enum mrc_ctl_ev_fields_op op;
    struct mrc_ctl_ev_field* fields; /* no more, and together no wider, than the format's fields */
    int field_count;                 /* in: length of fields; out: how many there are */
  } ev_fields_op;
  uint8_t vendor_cfg[MRC_CTL_MAX_VENDOR_CFG_SIZE];
};

/* Changes an EV profile. OFFLINE needs MODE, FMT_ID, COUNT and MODIFY_FIELDS; ONLINE needs
 * MIN_ACTIVE, EVENT_MASK and, in mode EXP, a value for every EV, because all start unpopulated. In
 * ONLINE the profile can go OFFLINE and the state of EVs can change; with
 * ..._EV_PROFILE_MODIFY_ONLINE also EVENT_MASK, EVs and fields.
 *
 * One call does one EV operation, or one operation on fields, or neither (both: EINVAL). An EV
 * operation stops at the first entry that fails, and earlier entries stay done: query the profile
 * to see the result. REPLACE_EV without ALL_COPIES replaces one of several equal EVs; the device
 * chooses which. E2BIG: more than the device has room for. ENOENT: no such EV. EBUSY: QPs use the
 * profile. */
int mrc_ctl_modify_ev_profile(struct mrc_context* mrc_ctx, uint64_t ev_profile_id,
                              struct mrc_ctl_ev_profile_attr* attr, int attr_mask) MRC_NOEXCEPT;

/* Reads an EV profile; one operation at most, as above. E2BIG: the array is too short, and its
 * count is then the number needed. ENOENT: no such EV. */
int mrc_ctl_query_ev_profile(struct mrc_context* mrc_ctx, uint64_t ev_profile_id,
                             struct mrc_ctl_ev_profile_attr* attr, int attr_mask) MRC_NOEXCEPT;

/* ---- CC profiles: congestion control ---- */

enum mrc_ctl_cc_profile_attr_mask {
  MRC_CTL_CC_PROFILE_STATE = 1 << 0,
  MRC_CTL_CC_PROFILE_CUR_STATE = 1 << 1,
  MRC_CTL_CC_PROFILE_ALGORITHM = 1 << 2,
  MRC_CTL_CC_PROFILE_CONFIG = 1 << 3,
  MRC_CTL_CC_PROFILE_VENDOR_CFG = -0x7fffffff - 1,
};

struct mrc_ctl_cc_profile_attr {
  enum mrc_ctl_profile_state profile_state;     /* the state to go to */
  enum mrc_ctl_profile_state cur_profile_state; /* the state it is in */
  const char* algorithm; /* one of mrc_ctl_device_attr.cc.algorithms; NULL: no congestion control */
  const void* cc_config; /* the algorithm's structure */
  uint8_t vendor_cfg[MRC_CTL_MAX_VENDOR_CFG_SIZE];
};

/* cc_config of "uet-1.0-nscc": bytes and nanoseconds. */
struct mrc_ctl_cc_nscc_cfg {
  uint8_t disable_qa; /* not 0: no quick adapt */
  uint32_t adjust_bytes_threshold;
  uint32_t adjust_period_threshold;
  uint32_t base_rtt;
  float eta;
  float fi;
  float fi_scale;
  float gamma;
  float max_md_jump;
  uint32_t max_cwnd;
  uint8_t qa_gate;
  uint32_t qa_threshold;
  uint32_t target_delay;
};

/* Changes, or reads, a CC profile. OFFLINE needs ALGORITHM, ONLINE needs CONFIG. In ONLINE the
 * profile can go OFFLINE; with ..._CC_PROFILE_MODIFY_ONLINE CONFIG can change too. EBUSY: QPs use
 * the profile. */
int mrc_ctl_modify_cc_profile(struct mrc_context* mrc_ctx, uint64_t cc_profile_id,
                              struct mrc_ctl_cc_profile_attr* attr, int attr_mask) MRC_NOEXCEPT;
int mrc_ctl_query_cc_profile(struct mrc_context* mrc_ctx, uint64_t cc_profile_id,
                             struct mrc_ctl_cc_profile_attr* attr, int attr_mask) MRC_NOEXCEPT;

/* ---- EV events ---- */

/* An EV of the profile entered a state that is in its ev_event_mask. The struct is 8 bytes longer
 * from API 1.0.1 on. */
struct mrc_ctl_ev_event {
  uint64_t profile_id;
  struct mrc_ctl_ev ev;
  uint32_t drop_count; /* events lost just before this one; 0 or 1 without ..._PRECISE_DROP_CNT */
#if MRC_CTL_API_VER_USED >= MRC_CTL_API_VER(1, 0, 1)
  enum mrc_ctl_ev_state state; /* filled for a program that declared 1.0.1 or later */
#endif
};

/* A CQ of at least `cqe` EV events. It never overruns: events that do not fit are counted in
 * drop_count. mrc_destroy_cq destroys it. NULL with errno as from ibv_create_cq. */
struct mrc_cq* mrc_ctl_create_ev_event_cq(struct mrc_context* mrc_ctx, int cqe, void* cq_context,
                                          struct mrc_comp_channel* channel,
                                          int comp_vector) MRC_NOEXCEPT;

/* Takes up to `num_entries` events and returns their number, or a negated errno value. */
int mrc_ctl_poll_ev_event(struct mrc_cq* ev_cq, int num_entries,
                          struct mrc_ctl_ev_event* ev_event) MRC_NOEXCEPT;

/* ---- Endpoint operations: requests to a peer without a QP ---- */

/* On the wire these two have the opposite values. */
enum mrc_ctl_ep_op_type { MRC_CTL_EP_OP_EV_PROBE, MRC_CTL_EP_OP_PORT_STATUS_UPDATE };

struct mrc_ctl_ep_req {
  uint16_t req_id;    /* unique among requests that may still be answered */
  union ibv_gid sgid; /* RoCEv2 GIDs of the source and the destination */
  union ibv_gid dgid;
  enum mrc_ctl_ev_fmt_mode ev_fmt_mode;
  struct mrc_ctl_ev req_ev; /* the path, and the port that sends it */
  union {
    struct {
      uint32_t port_status; /* bit N: port N is up; ports count from 1 */
    } port_status_update;
  } op;
};

struct mrc_ctl_ep_rsp {
  uint16_t req_id;
  uint8_t port;         /* the port that received the answer, from 1 */
  unsigned int rtt;     /* ns */
  uint8_t adj_svc_time; /* not 0: the peer's service time is already subtracted from rtt */
};

/* Sends `num_req` requests of one kind in traffic class `req_tc` (a DSCP) and waits until all are
 * answered or `rsp_timeout` ns have passed. `rsp` has room for num_req answers. *num_rsp is their
 * number, in the order of arrival; a later answer is lost. EAGAIN, ENOMEM: no resources. ENOTSUP:
 * the operation is not supported. ETIMEDOUT: answers are missing. */
int mrc_ctl_ep_batch_send_wait(struct mrc_context* mrc_ctx, uint8_t req_tc,
                               enum mrc_ctl_ep_op_type op_type, struct mrc_ctl_ep_req* req,
                               int num_req, uint32_t rsp_timeout, struct mrc_ctl_ep_rsp* rsp,
                               int* num_rsp) MRC_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* _MRC_CTL_API_H_ */
