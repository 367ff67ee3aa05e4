#include "scenario/parse.h"

#include <gtest/gtest.h>

#include <string>

namespace weft::scenario {
namespace {

constexpr std::string_view kTopology =
    "[topology]\n"
    "shape = \"two-tier\"\n"
    "hosts = 16\n"
    "hosts_per_t0 = 4\n"
    "t1_count = 4\n"
    "planes = 2\n"
    "host_rate = \"100Gbps\"\n";
constexpr std::string_view kWorkload =
    "[workload]\n"
    "kind = \"permutation\"\n"
    "bytes = \"1MiB\"\n";

// A complete scenario file. The topology is on lines 1 to 7, the workload on 8 to 10, and `more`
// begins on line 11.
std::string with(std::string_view more) {
  return std::string(kTopology) + std::string(kWorkload) + std::string(more);
}

std::string mistake(const std::string& toml) {
  const auto parsed = parse(toml, "dir/f.toml");
  return parsed ? "no mistake" : parsed.error().message;
}

TEST(Parse, ShortestScenarioHasDefaults) {
  const auto parsed = parse(with(""), "some/where/quick.toml");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->name, "quick");
  EXPECT_EQ(parsed->topology.hosts, 16u);
  EXPECT_EQ(parsed->topology.host_rate, Rate::gbps(100));
  EXPECT_EQ(parsed->topology.fabric_rate, Rate::gbps(100)) << "as host_rate unless given";
  EXPECT_EQ(parsed->forwarding, fabric::Forwarding::kSrv6);
  EXPECT_EQ(parsed->workload.kind, WorkloadKind::kPermutation);
  EXPECT_EQ(parsed->workload.bytes, 1u << 20);
  EXPECT_TRUE(parsed->expect.all_completed);
}

TEST(Parse, EveryTableOfTheFileIsRead) {
  const auto parsed = parse(
      "description = \"all of it\"\n" + std::string(kTopology) +
          "link_delay = \"1us\"\n"
          "[switch]\nforwarding = \"stev\"\nqueue = \"100kB\"\necn_min = 1000\necn_max = \"2kB\"\n"
          "trimming = false\nshared_buffer = \"64MiB\"\nshared_alpha = \"50%\"\n"
          "[transport]\nmtu = 1024\nevs = 32\nbackup_evs = 8\npolicy = \"reps\"\n"
          "condemn = \"first-loss\"\nev_min_active = 0.5\nsack_every = \"8KiB\"\n"
          "[transport.retry]\ntimeout = 8\nexponential_count = 3\n"
          "[workload]\nkind = \"flows\"\nbytes = \"64KiB\"\n"
          "[[workload.flow]]\nfrom = 0\nto = 5\npaths = [3, 1]\nstart = \"7us\"\n"
          "[[workload.flow]]\nfrom = 1\nto = 6\nbytes = 10\nbad_rkey = true\nqp = 2\n"
          "[[fault]]\nkind = \"loss\"\nshare = 0.01\nfrom = \"1ms\"\nuntil = \"2ms\"\n"
          "[[fault]]\nkind = \"link-down\"\nwhere = \"t0-t1\"\nplane = 1\nt0 = 3\nt1 = 2\n"
          "direction = \"up\"\n"
          "[random_faults]\ncount_max = 3\nwindow = \"1ms\"\nduration_max = \"1ms\"\n"
          "kinds = [\"loss\", \"host-crash\"]\n"
          "[expect]\nremote_access_errors = 1\njain_min = 0.98\nlongest_pause_max = \"100us\"\n"
          "[run]\nmemory = \"bytes\"\nseed = 7\n",
      "f.toml");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->description, "all of it");
  EXPECT_EQ(parsed->topology.link_delay, Duration::us(1));
  EXPECT_EQ(parsed->forwarding, fabric::Forwarding::kStev);
  EXPECT_FALSE(parsed->topology.needs_usids);
  EXPECT_EQ(parsed->switches.queue_bytes, 100'000u);
  EXPECT_EQ(parsed->switches.ecn_max_bytes, 2'000u);
  EXPECT_EQ(parsed->switches.shared_alpha_percent, 50u);
  EXPECT_EQ(parsed->transport.policy, transport::Policy::kReps);
  EXPECT_EQ(parsed->transport.condemn, transport::Condemn::kFirstLoss);
  EXPECT_EQ(parsed->transport.ev_min_active_percent, 50u);
  EXPECT_EQ(parsed->transport.sack_bytes, 8192u);
  EXPECT_EQ(parsed->transport.retry.timeout, 8u);
  EXPECT_EQ(parsed->transport.retry.linear_count, 7u);
  ASSERT_EQ(parsed->workload.flows.size(), 2u);
  EXPECT_EQ(parsed->workload.flows[0].paths, (std::vector<std::uint32_t>{3, 1}));
  EXPECT_EQ(parsed->workload.flows[0].start, Duration::us(7));
  EXPECT_TRUE(parsed->workload.flows[1].bad_rkey);
  EXPECT_EQ(parsed->workload.flows[1].qp, 2u);
  ASSERT_EQ(parsed->faults.size(), 2u);
  EXPECT_EQ(parsed->faults[0].share_ppm, 10'000u);
  EXPECT_EQ(parsed->faults[0].until, Duration::ms(2));
  EXPECT_EQ(parsed->faults[1].direction, Direction::kUp);
  EXPECT_EQ(parsed->random_faults.kinds.size(), 2u);
  EXPECT_EQ(parsed->expect.jain_min, 0.98);
  EXPECT_EQ(parsed->expect.longest_pause_max, Duration::us(100));
  EXPECT_EQ(parsed->run.memory, MemoryKind::kBytes);
  EXPECT_EQ(parsed->run.seed, 7u);
}

TEST(Parse, TextThatIsNotTomlIsRefusedWithLineAndColumn) {
  EXPECT_EQ(mistake("[topology\n").substr(0, 23), "dir/f.toml:1:10: not TO");
  EXPECT_EQ(mistake("a = 1\nb = \"\x01\"\n"),
            "dir/f.toml:2:6: not TOML: a control character; expected text");
  EXPECT_EQ(mistake(std::string("[\0]", 3)).substr(0, 24), "dir/f.toml:1:2: not TOML");
  // a byte order mark is skipped
  EXPECT_EQ(mistake("\xef\xbb\xbf[run]\nseed = x"), mistake("[run]\nseed = x"));
  EXPECT_EQ(mistake("hosts = \n").find('\n'), std::string::npos) << "one line";
}

TEST(Parse, StringValuesMayContainAnyCharacter) {
  const auto parsed = parse(
      "description = \"8\xc3\x97"
      "100G\"  # \xc2\xb5s\n" +
          with(""),
      "f.toml");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->description,
            "8\xc3\x97"
            "100G");
}

TEST(Parse, UnknownKeysAndTablesAreRefused) {
  EXPECT_EQ(mistake(with("\n[run]\nmemroy = \"none\"\n")),
            "dir/f.toml:13:1: unknown key \"memroy\" in [run]; did you mean \"memory\"?");
  EXPECT_EQ(mistake(with("[run]\nxyzzy = 1\n")),
            "dir/f.toml:12:1: unknown key \"xyzzy\" in [run]; expected one of time_limit, memory, "
            "judge, seed, sample");
  EXPECT_EQ(mistake(with("[tranport]\nmtu = 4096\n")),
            "dir/f.toml:11:2: unknown table \"tranport\" in the file; did you mean \"transport\"?");
  EXPECT_EQ(mistake(with("[transport.retries]\n")),
            "dir/f.toml:11:12: unknown table \"retries\" in [transport]; did you mean \"retry\"?");
}

TEST(Parse, MissingTablesAndKeysAreNamed) {
  EXPECT_EQ(
      mistake(std::string(kWorkload)),
      "dir/f.toml:1:1: the file lacks topology; expected a table [topology] with shape, hosts "
      "and host_rate");
  EXPECT_EQ(
      mistake(std::string(kTopology) + "[workload]\nkind = \"permutation\"\n"),
      "dir/f.toml:8:1: [workload] lacks bytes; expected how much a flow carries, as \"16MiB\"");
  EXPECT_EQ(mistake(with("[[fault]]\nkind = \"loss\"\n")),
            "dir/f.toml:11:1: [[fault]] lacks share; expected a share as \"1%\" or 0.01");
}

TEST(Parse, WrongTypesAndRangesAreRefused) {
  EXPECT_EQ(mistake(with("[transport]\nevs = \"many\"\n")),
            "dir/f.toml:12:7: evs = \"many\" is a text; expected a whole number from 1 to 4096");
  EXPECT_EQ(mistake(with("[transport]\nevs = 0\n")),
            "dir/f.toml:12:7: evs = 0 is out of range; expected a whole number from 1 to 4096");
  EXPECT_EQ(mistake(with("[transport]\nmpr = -1\n")),
            "dir/f.toml:12:7: mpr = -1 is out of range; expected a whole number from 1 to 255");
  EXPECT_EQ(mistake(with("[switch]\ntrimming = 1\n")),
            "dir/f.toml:12:12: trimming = 1 does not fit; expected true or false");
  EXPECT_EQ(mistake(with("[transport]\npolicy = \"ecmp\"\n")),
            "dir/f.toml:12:10: policy = \"ecmp\" is not known; expected one of \"mrc\", "
            "\"oblivious\", \"reps\", \"flow-hash\"");
  EXPECT_EQ(mistake(with("[expect]\njain_min = 1.5\n")),
            "dir/f.toml:12:12: jain_min does not fit; expected a number from 0 to 1");
  EXPECT_EQ(mistake(with("[fault]\nkind = \"loss\"\n")),
            "dir/f.toml:11:1: fault is not a list of tables; expected [[fault]] with double "
            "brackets");
  EXPECT_EQ(mistake("run = 5\n" + with("")),
            "dir/f.toml:1:7: [run] is not a table; expected a line [run] and keys below it");
}

TEST(Parse, WrongUnitsAreRefused) {
  EXPECT_EQ(mistake(with("[switch]\nqueue = \"16Mib\"\n")),
            "dir/f.toml:12:9: queue = \"16Mib\" has the unknown unit \"Mib\"; expected a size as "
            "\"16MiB\" (units B, kB, MB, GB, KiB, MiB, GiB) or a whole number of bytes");
  EXPECT_EQ(mistake(with("[run]\ntime_limit = 5\n")),
            "dir/f.toml:12:14: time_limit = 5 does not fit; expected a duration as \"5us\" (units "
            "ps, ns, us, ms, s)");
  EXPECT_EQ(mistake(with("[[fault]]\nkind = \"loss\"\nshare = 5\n")),
            "dir/f.toml:13:9: share is not between 0 and 1; expected a share as \"1%\" or 0.01");
}

TEST(Parse, ImpossibleTopologiesAreRefused) {
  std::string toml = with("");
  toml.replace(toml.find("hosts = 16"), 10, "hosts = 15");
  EXPECT_EQ(mistake(toml),
            "dir/f.toml:1:1: topology: hosts = 15 is not a multiple of hosts_per_t0 = 4; 12 or 16 "
            "would fit");
  toml = with("");
  toml.replace(toml.find("two-tier"), 8, "single");
  EXPECT_EQ(mistake(toml),
            "dir/f.toml:4:1: hosts_per_t0 means nothing here; it needs shape = \"two-tier\" or "
            "\"three-tier\"");
}

TEST(Parse, EvsMustSpreadEvenlyOverThePlanes) {
  EXPECT_EQ(mistake(with("[transport]\nevs = 7\n")),
            "dir/f.toml:12:7: evs = 7 do not spread evenly; expected a multiple of planes = 2");
}

TEST(Parse, WorkloadsThatDoNotFitTheTopologyAreRefused) {
  const auto workload = [](std::string_view keys) {
    return mistake(std::string(kTopology) + "[workload]\n" + std::string(keys));
  };
  EXPECT_EQ(workload("kind = \"permutation\"\nbytes = 1\nhosts = 17\n"),
            "dir/f.toml:11:9: hosts = 17 of 16 in the topology; expected at most 16");
  EXPECT_EQ(workload("kind = \"incast\"\nbytes = 1\nsenders = 16\n"),
            "dir/f.toml:11:11: senders = 16 of 16 hosts; expected at most 15");
  EXPECT_EQ(
      workload("kind = \"ring-all-reduce\"\nbytes = 1\ngroup = 5\n"),
      "dir/f.toml:11:9: groups of 5 do not divide 16 hosts; expected a divisor of at least 2");
  EXPECT_EQ(workload("kind = \"permutation\"\nbytes = 1\nsenders = 3\n"),
            "dir/f.toml:11:1: senders means nothing here; it needs kind = \"incast\"");
  EXPECT_EQ(workload("kind = \"flows\"\nbytes = 1\n"),
            "dir/f.toml:9:8: kind = \"flows\" without a flow; expected [[workload.flow]] tables");
  EXPECT_EQ(workload("kind = \"flows\"\nbytes = 1\n[[workload.flow]]\nfrom = 0\nto = 16\n"),
            "dir/f.toml:11:1: flow 0 names host 16; expected hosts 0 to 15");
  EXPECT_EQ(workload("kind = \"flows\"\nbytes = 1\n[[workload.flow]]\nfrom = 3\nto = 3\n"),
            "dir/f.toml:13:6: a flow from a host to itself; expected two hosts");
  EXPECT_EQ(
      workload("kind = \"flows\"\nbytes = 1\n[[workload.flow]]\nfrom = 0\nto = 9\npaths = [4]\n"),
      "dir/f.toml:11:1: flow 0 names path 4; expected paths 0 to 3");
  EXPECT_EQ(workload("kind = \"pairs\"\nbytes = 1\nrepeat_for = \"1ms\"\n"),
            "dir/f.toml:10:1: bytes means nothing here; it needs a workload without repeat_for, "
            "which says how long instead");
}

TEST(Parse, FaultsThatNameMissingThingsAreRefused) {
  const auto fault = [](std::string_view keys) {
    return mistake(with("[[fault]]\n" + std::string(keys)));
  };
  EXPECT_EQ(fault("kind = \"plane-down\"\nplane = 2\n"),
            "dir/f.toml:13:9: plane = 2 does not exist; expected 0 to 1");
  EXPECT_EQ(fault("kind = \"host-crash\"\nhost = 99\n"),
            "dir/f.toml:13:8: host = 99 does not exist; expected 0 to 15");
  EXPECT_EQ(fault("kind = \"switch-down\"\ntier = \"t2\"\nswitch = 0\n"),
            "dir/f.toml:14:10: the topology has no switch; see its shape");
  EXPECT_EQ(fault("kind = \"link-down\"\nwhere = \"t0-t1\"\nt0 = 3\nt1 = 3\ncount = 2\n"),
            "dir/f.toml:16:9: count = 2 goes beyond the last link; expected at most 1");
  EXPECT_EQ(
      fault("kind = \"link-down\"\n"),
      "dir/f.toml:11:1: [[fault]] lacks where; expected \"host-link\", \"t0-t1\" or \"t1-t2\"");
  EXPECT_EQ(
      fault("kind = \"link-down\"\nwhere = \"all-links\"\n"),
      "dir/f.toml:13:9: a link must be named; expected \"host-link\", \"t0-t1\" or \"t1-t2\"");
  EXPECT_EQ(fault("kind = \"host-pause\"\nhost = 1\nfrom = \"2ms\"\nuntil = \"1ms\"\n"),
            "dir/f.toml:15:9: until is not after from; expected a later time");
  EXPECT_EQ(fault("kind = \"loss\"\nshare = \"1%\"\nperiod = \"1ms\"\n"),
            "dir/f.toml:14:1: period means nothing here; it needs kind = \"link-flap\"");
  EXPECT_EQ(fault("kind = \"ev-loss\"\nshare = \"1%\"\nevs = [160]\n"),
            "dir/f.toml:14:7: evs = 160 does not exist; expected 0 to 159");
}

TEST(Parse, ExpectationsWithoutTheirWindowAreRefused) {
  EXPECT_EQ(
      mistake(with("[expect]\nsettled_share_min = 0.9\n")),
      "dir/f.toml:11:1: [expect] lacks settled_from; expected the window that settled_share_* "
      "speaks of");
  EXPECT_EQ(mistake(with("[expect]\nsettled_from = \"2ms\"\nsettled_until = \"1ms\"\n")),
            "dir/f.toml:13:17: settled_until is not after settled_from; expected a later time");
}

TEST(Parse, ErrorMessageIsOneLineForAnyFileContent) {
  const std::string message = mistake(with("[run]\nmemory = \"\"\"a\nb\\u001b[31m\"\"\"\n"));
  EXPECT_EQ(message.substr(0, 26), "dir/f.toml:12:10: memory =");
  EXPECT_EQ(message.find('\n'), std::string::npos);
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
  EXPECT_LE(mistake(with("[run]\n" + std::string(5000, 'x') + " = 1\n")).size(), 1100u);
}

}  // namespace
}  // namespace weft::scenario
