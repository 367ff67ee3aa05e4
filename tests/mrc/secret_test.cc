// QPs between processes with the same job secret, or with different secrets. The processes exchange
// only what verbs programs exchange: GID, QP number and PSN.
#include <sys/stat.h>

#include <filesystem>

#include "configured_pair.h"

namespace weft::mrc_test {
namespace {

// Uses a short timeout and few retries, so that a QP fails within milliseconds.
int to_rts_impatiently(End& end) {
  mrc_qp_attr attr{};
  attr.timeout = 12;
  attr.retry.linear_cnt = 3;
  attr.retry.exp_cnt = 1;
  return end.to_rts(&attr, MRC_QP_TIMEOUT | MRC_QP_RETRY_CNT);
}

class Secret : public testing::Test {
 protected:
  Secret() {
    std::string pattern = "/tmp/weft-secret-XXXXXX";
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  ~Secret() override { std::filesystem::remove_all(directory_); }
  Environment with(const std::string& words) const {
    const std::string path = directory_ + "/" + words;
    std::ofstream(path) << words << std::string(40, '.');
    chmod(path.c_str(), 0600);
    return {{"WEFT_SECRET_FILE", path}};
  }
  std::string directory_;
};

TEST_F(Secret, EndsWithTheSameSecretConnectWithoutSharedMemory) {
  WEFT_NEEDS_FRESH_PROCESS();
  const Rings rings = run_pair(with("ours"), with("ours"));
  EXPECT_FALSE(rings.at_writer);
  EXPECT_FALSE(rings.at_receiver);
}

// The write would arrive if packets were not sealed, or if their tags were not checked.
TEST_F(Secret, EndsWithDifferentSecretsExchangeNoBytes) {
  WEFT_NEEDS_FRESH_PROCESS();
  for (const Environment& theirs : {with("theirs"), Environment{{"WEFT_SHM", "off"}}}) {
    OtherProcess other([&](const Line& line) {
      use(theirs);
      Child child;
      child.end.connect(child.meet(line));
      line.send(1);
      line.receive<int>();
      for (const std::uint8_t byte : child.end.memory) ASSERT_EQ(byte, 0);
    });
    OtherProcess mine([&](const Line& line) {
      use(with("ours"));
      Child child;
      const Wire peer = child.meet(line);
      EXPECT_EQ(child.end.to_init(), 0);
      EXPECT_EQ(child.end.to_rtr(peer), 0);
      EXPECT_EQ(to_rts_impatiently(child.end), 0);
      line.send(1);
      line.receive<int>();
      std::memset(child.end.memory.data(), 0xff, child.end.memory.size());
      EXPECT_EQ(child.end.post(peer, {.size = 1000}), 0);
      EXPECT_EQ(wait_for(child.end.send_cq).status, IBV_WC_RETRY_EXC_ERR);
      line.send(1);
    });
    const Wire of_other = other.line().receive<Wire>(), of_mine = mine.line().receive<Wire>();
    other.line().send(of_mine);
    mine.line().send(of_other);
    other.line().receive<int>();
    mine.line().receive<int>();
    mine.line().send(1);
    mine.line().receive<int>();
    other.line().send(1);
    EXPECT_EQ(mine.join(), 0);
    EXPECT_EQ(other.join(), 0);
  }
}

// The peer process is killed, and a new process takes its place on the network. The surviving
// process must be able to connect to the new process.
TEST_F(Secret, ARestartedPeerCanBeConnectedAgain) {
  WEFT_NEEDS_FRESH_PROCESS();
  OtherProcess stays([&](const Line& line) {
    use(with("ours"));
    Child first;
    first.end.connect(first.meet(line));
    line.send(1);
    line.receive<int>();
    Child second;
    const Wire peer = second.meet(line);
    second.end.connect(peer);
    line.send(1);
    line.receive<int>();
    fill(second.end.memory.data(), 5000, 7);
    EXPECT_EQ(second.end.post(peer, {.size = 5000}), 0);
    EXPECT_EQ(wait_for(second.end.send_cq).status, IBV_WC_SUCCESS);
    line.send(1);
  });
  for (int life = 0; life < 2; ++life) {
    OtherProcess other([&](const Line& line) {
      use(with("ours"));
      Child child;
      const Wire peer = child.meet(line);
      child.end.connect(peer);
      fill(child.end.memory.data(), 3000, 5);
      EXPECT_EQ(child.end.post(peer, {.size = 3000}), 0);
      EXPECT_EQ(wait_for(child.end.send_cq).status, IBV_WC_SUCCESS);
      line.send(1);
      line.receive<int>();
      if (life == 0) return;
      EXPECT_EQ(first_wrong(child.end.memory.data(), 5000, 7), 5000u);
    });
    const Wire of_other = other.line().receive<Wire>(), of_stays = stays.line().receive<Wire>();
    stays.line().send(of_other);
    stays.line().receive<int>();
    other.line().send(of_stays);
    other.line().receive<int>();
    if (life == 0) {
      other.kill_process();
      stays.line().send(1);
    } else {
      stays.line().send(1);
      stays.line().receive<int>();
      other.line().send(1);
      EXPECT_EQ(other.join(), 0);
    }
  }
  EXPECT_EQ(stays.join(), 0);
}

}  // namespace
}  // namespace weft::mrc_test
