#include <algorithm>

#include "judge/rules.h"

namespace weft::judge {
namespace {

bool is_ok(const TraceRecord& completion) { return completion.a == 0; }

// The post that should complete next: the first one that is signalled or has this id. Unsignalled
// posts before it need no completion, although an error may give them one.
std::size_t expected_at(const Qp& qp, std::uint64_t id) {
  for (std::size_t i = 0; i < qp.posts.size(); ++i) {
    if (qp.posts[i].id == id || qp.posts[i].signalled) return i;
  }
  return qp.posts.size();
}

// Complains about a completion that is not for the post that is due. Returns the position of the
// completed post, or the number of posts if there is none.
std::size_t complain_of_order(const Qp& qp, const TraceRecord& record, std::size_t due,
                              Complaints& complaints) {
  const auto at = std::find_if(qp.posts.begin(), qp.posts.end(),
                               [&](const Post& post) { return post.id == record.id; });
  if (at != qp.posts.end()) {
    complaints.add(qp.place(record.at), Rule::kCompletion,
                   "post {} completed before post {}, which is older", record.id, qp.posts[due].id);
    return static_cast<std::size_t>(at - qp.posts.begin());
  }
  const auto& done = qp.completion.succeeded;
  if (std::find(done.begin(), done.end(), record.id) != done.end()) {
    complaints.add(qp.place(record.at), Rule::kCompletion, "post {} completed a second time",
                   record.id);
  } else {
    complaints.add(qp.place(record.at), Rule::kCompletion,
                   "a completion for {}, which is not posted or completed before", record.id);
  }
  return qp.posts.size();
}

void check_status(Qp& qp, const TraceRecord& record, Complaints& complaints) {
  if (is_ok(record)) {
    if (!qp.completion.error_given) return;
    complaints.add(qp.place(record.at), Rule::kCompletion,
                   "{} completed with success after an earlier one completed with an error",
                   record.id);
    return;
  }
  if (!qp.in_error) {
    complaints.add(qp.place(record.at), Rule::kCompletion,
                   "{} completed with status {}, but the QP is not in error", record.id, record.a);
  }
  qp.completion.error_given = true;
}

void check_success(const Qp& qp, const Post& post, const TraceRecord& record,
                   Complaints& complaints) {
  if (!post.signalled) {
    complaints.add(qp.place(record.at), Rule::kCompletion,
                   "post {} is not signalled, yet it completed with success", post.id);
  }
  if (qp.acked < post.last()) {
    complaints.add(qp.place(record.at), Rule::kCompletion,
                   "post {} completed before a Transport ACK for its last PSN {} came", post.id,
                   psn_of_index(post.last(), qp.tx_first).value());
  }
}

}  // namespace

void check_send_completion(Qp& qp, const TraceRecord& record, Complaints& complaints) {
  check_status(qp, record, complaints);
  std::size_t at = expected_at(qp, record.id);
  const bool in_order = at < qp.posts.size() && qp.posts[at].id == record.id;
  if (!in_order) {
    at = complain_of_order(qp, record, at, complaints);
    if (at == qp.posts.size()) return;
  }
  if (is_ok(record)) check_success(qp, qp.posts[at], record, complaints);

  // A success also completes the unsignalled posts before it.
  const std::size_t from = in_order ? 0 : at;
  for (std::size_t i = from; is_ok(record) && i <= at; ++i) {
    qp.completion.succeeded.push_back(qp.posts[i].id);
  }
  const auto begin = qp.posts.begin();
  qp.posts.erase(begin + static_cast<std::ptrdiff_t>(from),
                 begin + static_cast<std::ptrdiff_t>(at) + 1);
}

void check_receive_completion(Qp& qp, const TraceRecord& record, Complaints& complaints) {
  if (!is_ok(record) && !qp.in_error) {
    complaints.add(qp.place(record.at), Rule::kCompletion,
                   "receive {} completed with status {}, but the QP is not in error", record.id,
                   record.a);
  }
  if (!qp.receives.empty() && qp.receives.front() == record.id) {
    qp.receives.pop_front();
    return;
  }
  const auto at = std::find(qp.receives.begin(), qp.receives.end(), record.id);
  if (at == qp.receives.end()) {
    complaints.add(qp.place(record.at), Rule::kCompletion,
                   "a completion for receive {}, which is not posted or completed before",
                   record.id);
    return;
  }
  complaints.add(qp.place(record.at), Rule::kCompletion,
                 "receive {} completed before receive {}, which is older", record.id,
                 qp.receives.front());
  qp.receives.erase(at);
}

void finish_completion(const Qp& qp, Time end, Complaints& complaints) {
  if (!qp.in_error || qp.gone || qp.host_down) return;
  for (const Post& post : qp.posts) {
    if (!post.signalled) continue;
    complaints.add(qp.place(end), Rule::kCompletion,
                   "the QP is in error, but post {} was never flushed", post.id);
  }
  for (const std::uint64_t id : qp.receives) {
    complaints.add(qp.place(end), Rule::kCompletion,
                   "the QP is in error, but receive {} was never flushed", id);
  }
}

}  // namespace weft::judge
