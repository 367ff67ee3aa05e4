#include <algorithm>

#include "judge/rules.h"

namespace weft::judge {

void MemoryRule::read(const TraceRecord& record) {
  Receiver& receiver = receivers_[{record.host, record.qpn}];
  receiver.messages.push_back({.id = record.id, .right = record.a, .size = record.b});
  receiver.sorted = false;
}

void MemoryRule::finish(const Qp& sender, Time end, Complaints& complaints) {
  if (sender.host_down || sender.peer_down) return;
  Receiver& receiver = receivers_[{sender.peer_host, sender.peer_qpn}];
  std::vector<CheckedMessage>& messages = receiver.messages;
  const auto by_id = [](const CheckedMessage& a, const CheckedMessage& b) { return a.id < b.id; };
  if (!receiver.sorted) std::sort(messages.begin(), messages.end(), by_id);
  receiver.sorted = true;

  for (const std::uint64_t id : sender.completion.succeeded) {
    const auto [first, last] =
        std::equal_range(messages.begin(), messages.end(), CheckedMessage{.id = id}, by_id);
    if (first == last) {
      complaints.add(sender.place(end), Rule::kMemory,
                     "message {} completed, but the trace has no record of the receiver's memory",
                     id);
    }
    for (auto at = first; at != last; ++at) {
      if (at->right == at->size) continue;
      complaints.add(sender.place(end), Rule::kMemory,
                     "message {} completed, but only {} of its {} bytes are right in memory", id,
                     at->right, at->size);
    }
  }
}

}  // namespace weft::judge
