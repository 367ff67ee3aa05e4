// Judge: reads the trace of a run and reports every violation of a rule. It shares only `wire` with
// the transport, so that it does not repeat a mistake of the transport.
//
//   Judge judge({.duplicates = true});
//   judge.read(records);                 // in time order, in pieces as they come
//   for (const Complaint& c : judge.finish()) std::puts(to_string(c).c_str());
//
// README.md lists the rules, and the records that a writer of a trace must write in which order.
// The judge accepts any records and complains about meaningless ones. Its memory grows with the
// packets and messages in flight, not with the length of the run, except for one id per message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/trace.h"
#include "judge/complaint.h"
#include "judge/packet_ledger.h"
#include "judge/qp.h"
#include "judge/rules.h"

namespace weft::judge {

struct Options {
  bool duplicates = false;       // the scenario duplicates packets
  bool errors_expected = false;  // a QP may fail although its peer lives
  std::int64_t cwnd_tolerance_bytes = 0;
  std::int64_t psn_window_tolerance = 0;
  Duration packet_life = Duration::s(30);          // a packet arrives within this time or never
  std::size_t packets_max = std::size_t{1} << 18;  // packets in flight in the PacketLedger
  std::size_t complaints_max = 64;
  std::size_t complaints_per_rule_max = 8;
};

class Judge {
 public:
  explicit Judge(const Options& options = {});

  // The next records of the run, in order of time.
  void read(std::span<const TraceRecord> records);
  void read(const TraceRecord& record);

  // Applies the rules for the end of a run, and returns all kept complaints in the order in which
  // they were found. REQUIRES that it is called once, after the last record.
  std::vector<Complaint> finish();

  // The number of complaints, kept or not.
  std::uint64_t complaint_count() const { return complaints_.total(); }

 private:
  void on_record(const TraceRecord& record);
  void on_qp(const TraceRecord& record);
  void on_send(const TraceRecord& record);
  void on_data_sent(const TraceRecord& record, const wire::Bth& bth, const wire::Write& write);
  void on_receive(const TraceRecord& record);
  void on_post(Qp& qp, const TraceRecord& record);
  void on_post_recv(const TraceRecord& record);
  void on_complete(Qp& qp, const TraceRecord& record);

  // The record's QP; complains and returns nullptr if there is none.
  Qp* known_qp(const TraceRecord& record);
  Place place(const TraceRecord& record) const {
    return {.at = record.at, .host = record.host, .qpn = record.qpn};
  }

  Options options_;
  Complaints complaints_;
  QpTable qps_;
  PacketLedger ledger_;
  MemoryRule memory_;
  // Receives that were posted before their QP reached RTR, by host and QPN.
  std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> early_receives_;
  Time last_;
  bool healed_ = false;
  bool ended_ = false;
};

}  // namespace weft::judge
