#include "transport/qp_table.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "transport/test_memory.h"

namespace weft::transport {
namespace {

struct Bench {
  explicit Bench(const QpTable::Options& options) : table(options) {
    params.config.nscc.rate = Rate::gbps(100);
    params.config.nscc.base_rtt = Duration::us(10);
    params.nscc = NsccParams::derive(params.config.nscc, params.mtu, *params.peer);
  }
  Qp& create() {
    Qp::Options options;
    options.params = &params;
    options.qpn = table.next_number();
    options.requestor = {.params = &params, .pool = &pool, .first_psn = Psn(0), .paths = {}};
    return table.emplace(options, test::make_evs({}));
  }
  std::vector<Qpn> all() {
    std::vector<Qpn> numbers;
    table.for_each([&](const Qp& qp) { numbers.push_back(qp.qpn); });
    return numbers;
  }
  std::vector<Qpn> all_of(const Peer& peer) {
    std::vector<Qpn> numbers;
    table.for_each_of(peer, [&](const Qp& qp) { numbers.push_back(qp.qpn); });
    return numbers;
  }

  QpParams params;
  PsnBlockPool pool{8};
  QpTable table;
};

using Numbers = std::vector<Qpn>;

TEST(QpTable, QpIsFoundByAllBitsOfItsNumber) {
  Bench bench({.qp_count_max = 4, .first_qpn = 0x200});
  Qp& qp = bench.create();
  EXPECT_EQ(qp.qpn, 0x200u);
  EXPECT_EQ(bench.table.find(0x200), &qp);
  EXPECT_EQ(bench.table.find(0x201), nullptr);
  EXPECT_EQ(bench.table.find(0x204), nullptr);  // another number with the same index
  EXPECT_EQ(&bench.table[bench.table.index_of(qp)], &qp);
}

TEST(QpTable, NumbersAreUsedAgainOnlyAfterAllOthers) {
  Bench bench({.qp_count_max = 2, .first_qpn = 0x1fffe, .qpn_bits = 16});
  std::set<Qpn> used;
  for (int i = 0; i < 8; ++i) {
    const Qp& qp = bench.create();
    EXPECT_EQ(qp.qpn >> 16, 1u);  // the high bits do not change
    EXPECT_TRUE(used.insert(qp.qpn).second) << std::hex << qp.qpn;
    bench.table.erase(bench.table.index_of(qp));
  }
  EXPECT_EQ(used.count(0x10000), 1u);  // the low bits wrapped around
  EXPECT_EQ(used.count(0x20000), 0u);
}

TEST(QpTable, ReservedNumbersAndThoseWhoseIndexIsTakenAreLeftOut) {
  Bench bench({.qp_count_max = 2});
  bench.create();
  bench.table.erase(bench.table.index_of(bench.create()));
  EXPECT_EQ(bench.create().qpn, 0x103u);  // 0x102 has the index of 0x100
  Bench low({.qp_count_max = 8, .first_qpn = 0, .qpn_bits = 3});
  EXPECT_EQ(low.create().qpn, wire::kEndpointQpn + 1);
}

TEST(QpTable, FullTableHoldsTheMaximumOfQps) {
  Bench bench({.qp_count_max = 3});
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(bench.table.full());
    bench.create();
  }
  EXPECT_TRUE(bench.table.full());
  EXPECT_EQ(bench.all(), (Numbers{0x100, 0x101, 0x102}));
  bench.table.erase(1);
  EXPECT_FALSE(bench.table.full());
  EXPECT_EQ(bench.all(), (Numbers{0x100, 0x102}));
}

TEST(QpTable, QpsOfAPeerAreListedNewestFirst) {
  Bench bench({.qp_count_max = 4});
  Peer peer;
  EXPECT_TRUE(bench.all_of(peer).empty());
  Qp* qps[3];
  for (Qp*& qp : qps) {
    qp = &bench.create();
    bench.table.link(peer, *qp);
  }
  EXPECT_EQ(bench.all_of(peer), (Numbers{0x102, 0x101, 0x100}));
  bench.table.unlink(peer, *qps[1]);
  EXPECT_EQ(bench.all_of(peer), (Numbers{0x102, 0x100}));
  bench.table.unlink(peer, *qps[2]);
  bench.table.unlink(peer, *qps[0]);
  EXPECT_TRUE(bench.all_of(peer).empty());
}

TEST(QpTableDeathTest, QpThatIsInNoListCannotLeaveIt) {
  Bench bench({.qp_count_max = 4});
  Peer peer;
  bench.table.link(peer, bench.create());
  const Qp& other = bench.create();
  EXPECT_DEATH(bench.table.unlink(peer, other), "weft bug");
}

}  // namespace
}  // namespace weft::transport
