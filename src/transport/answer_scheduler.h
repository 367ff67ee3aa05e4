// AnswerScheduler: when is received data acknowledged?
//
// The answers of a QP are the SACK and the Transport ACK that received data made due. Prompt
// answers leave at the end of the batch that brought the data. Delayed answers are for software
// peers, in worlds in which a packet costs its sender time. They leave after the data of the same
// poll_transmit. While data is sent to the peers that wait for answers, their answers wait for up
// to `delay`. The wait ends early when many packets are unanswered, or when a peer is blocked on
// its answers.
//
// A peer is blocked when its program sends nothing before its last write is complete. The sign: the
// peer is silent for the second half of the delay, and sends data as soon as it has the delayed
// answers. One such delay may be chance, since a process stands still now and then. Two in a row
// are taken as proof: for 50 ms the QP's answers are not delayed. After that new proof is needed.
//
// A quiet report is a SACK that no packet asked for. It is sent when data has come that no SACK
// reports yet, and nothing has followed for as long as `quiet`. The packet that would have made a
// SACK due may be lost.
//
// Owned by the endpoint, which sends the answers and the reports. QPs are named by their index; the
// state of each is an `OfQp` inside the QP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/assert.h"
#include "base/ring.h"
#include "base/time.h"

namespace weft::transport {

class AnswerScheduler {
 public:
  struct Options {
    Duration delay{};  // 0: all answers are prompt
    std::uint32_t qp_count_max = 1;
  };
  struct OfQp {
    Time received_at;                // when the newest data packet came
    bool is_unanswered = false;      // its index is in prompt() or delayed()
    bool is_watched = false;         // in watched_: may owe a quiet report
    std::uint8_t times_blocked = 0;  // delayed answers in a row that the peer was blocked on
    // Data before this time shows that the peer was blocked on its last delayed answers.
    Time blocked_if_before;
    Time undelayed_until;  // answers leave at once until this time
  };

  explicit AnswerScheduler(const Options& options);

  // A data packet came for this QP, whose answers may be delayed if `may_delay`. Returns true for
  // the first packet since the QP was last answered.
  bool on_data(Time now, std::uint32_t index, OfQp& qp, bool may_delay);

  // The QPs that are answered at the end of the batch: they received data since their last answers.
  // In the order of arrival. Call on_prompt_answered() when all of them are answered.
  std::span<const std::uint32_t> prompt() const { return prompt_; }
  void on_prompt_answered(OfQp& qp) const {
    WEFT_ASSERT(qp.is_unanswered);
    qp.is_unanswered = false;
  }
  void on_all_prompt_answered() { prompt_.clear(); }
  // The QPs that received data since their last answers, and whose answers may be delayed.
  std::span<const std::uint32_t> delayed() const { return delayed_; }
  // Data was sent to the peers of all QPs in delayed(): their answers may wait.
  void on_data_sent(Time now) {
    if (answer_at_ == kNever) answer_at_ = now + delay_;
  }
  // True when all QPs in delayed() must be answered now.
  bool is_due(Time now) const;
  // The answers of this QP, one of delayed(), leave now. Call on_all_delayed_answered() when all of
  // delayed() are answered.
  void on_delayed_answered(Time now, OfQp& qp) const;
  void on_all_delayed_answered();
  // The time at which delayed answers leave at the latest, even if we still send data to these
  // peers.
  Time answer_at() const { return answer_at_; }

  // The responder took a data packet: when nothing follows for as long as `quiet`, the QP may owe a
  // quiet report. `quiet` 0: the QP never owes one.
  void watch(Time now, std::uint32_t index, OfQp& qp, Duration quiet);
  // When the watched QPs must be looked at.
  Time quiet_at() const { return quiet_at_; }
  // Begins a round over the watched QPs. Returns their number: call take_watched() that many times,
  // and pass each result to is_quiet().
  std::size_t begin_quiet_round();
  std::uint32_t take_watched();
  // True: the QP owes a SACK, and nothing came for as long as `quiet`: the report is due. A QP that
  // owes a SACK and received data since then stays watched.
  struct Watched {
    bool owes_sack = false;
    Duration quiet{};  // the time given to watch()
  };
  bool is_quiet(Time now, std::uint32_t index, OfQp& qp, const Watched& watched);

  // The QP is destroyed, and its state with it.
  void forget(std::uint32_t index);

  std::size_t bytes() const {
    return (prompt_.capacity() + delayed_.capacity()) * sizeof(std::uint32_t) + watched_.bytes();
  }

 private:
  bool is_delaying() const { return delay_ > Duration(); }

  Duration delay_;
  std::vector<std::uint32_t> prompt_, delayed_;  // capacity taken at construction
  std::uint32_t packets_delayed_ = 0;            // data packets that the QPs in delayed_ received
  bool a_peer_is_blocked_ = false;               // the peer of a QP in delayed_
  Time answer_at_ = kNever;
  Time quiet_at_ = kNever;
  Ring<std::uint32_t> watched_;  // oldest first
};

}  // namespace weft::transport
