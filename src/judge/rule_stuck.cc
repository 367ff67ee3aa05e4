#include <algorithm>

#include "judge/rules.h"

namespace weft::judge {

void finish_stuck(const Qp& qp, Time end, Complaints& complaints) {
  if (!qp.is_healthy() || qp.posts.empty()) return;
  const auto waits = [](const Post& post) { return post.signalled; };
  const auto waiting = std::count_if(qp.posts.begin(), qp.posts.end(), waits);
  if (waiting == 0 && qp.acked + 1 >= qp.packets_posted) return;
  const auto oldest = std::find_if(qp.posts.begin(), qp.posts.end(), waits);
  const Post& post = oldest == qp.posts.end() ? qp.posts.back() : *oldest;
  complaints.add(qp.place(end), Rule::kStuck,
                 "{} posts never completed; the oldest, {}, has {} packets, {} of the QP's {} were"
                 " sent, {} received and {} acknowledged",
                 std::max<std::ptrdiff_t>(waiting, 1), post.id, post.count, qp.sent.first_missing(),
                 qp.packets_posted, qp.peer->received.first_missing(), qp.acked + 1);
}

}  // namespace weft::judge
