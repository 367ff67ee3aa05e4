// QPs between processes that have a job secret, or not the same. Nothing of Weft is told out of band.
#include <sys/stat.h>

#include <filesystem>

#include "way_child.h"

namespace weft::mrc_test {
namespace {

// Fails fast: a few milliseconds, twice.
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

TEST_F(Secret, EndsThatHaveTheSameTalkWithoutSharedMemory) {
  WEFT_NEEDS_FRESH_PROCESS();
  const Rings rings = play(with("ours"), with("ours"));
  EXPECT_FALSE(rings.at_writer);
  EXPECT_FALSE(rings.at_taker);
}

// Were packets not sealed, or seals not checked, the write would arrive.
TEST_F(Secret, EndsThatHaveNotTheSameNeverMeet) {
  WEFT_NEEDS_FRESH_PROCESS();
  for (const Environment& theirs : {with("theirs"), Environment{{"WEFT_SHM", "off"}}}) {
    OtherProcess other([&](const Line& line) {
      use(theirs);
      Child child;
      child.end.connect(child.meet(line));
      line.tell(1);
      line.hear<int>();
      for (const std::uint8_t byte : child.end.memory) ASSERT_EQ(byte, 0);
    });
    OtherProcess mine([&](const Line& line) {
      use(with("ours"));
      Child child;
      const Wire peer = child.meet(line);
      EXPECT_EQ(child.end.to_init(), 0);
      EXPECT_EQ(child.end.to_rtr(peer), 0);
      EXPECT_EQ(to_rts_impatiently(child.end), 0);
      line.tell(1);
      line.hear<int>();
      std::memset(child.end.memory.data(), 0xff, child.end.memory.size());
      EXPECT_EQ(child.end.post(peer, {.size = 1000}), 0);
      EXPECT_EQ(wait_for(child.end.send_cq).status, IBV_WC_RETRY_EXC_ERR);
      line.tell(1);
    });
    const Wire of_other = other.line().hear<Wire>(), of_mine = mine.line().hear<Wire>();
    other.line().tell(of_mine);
    mine.line().tell(of_other);
    other.line().hear<int>();
    mine.line().hear<int>();
    mine.line().tell(1);
    mine.line().hear<int>();
    other.line().tell(1);
    EXPECT_EQ(mine.join(), 0);
    EXPECT_EQ(other.join(), 0);
  }
}

// The process there is killed, another takes its place on the network: who stayed talks to both.
TEST_F(Secret, APeerThatStartsOverIsMetAnew) {
  WEFT_NEEDS_FRESH_PROCESS();
  OtherProcess stays([&](const Line& line) {
    use(with("ours"));
    Child first;
    first.end.connect(first.meet(line));
    line.tell(1);
    line.hear<int>();
    Child second;
    const Wire peer = second.meet(line);
    second.end.connect(peer);
    line.tell(1);
    line.hear<int>();
    fill(second.end.memory.data(), 5000, 7);
    EXPECT_EQ(second.end.post(peer, {.size = 5000}), 0);
    EXPECT_EQ(wait_for(second.end.send_cq).status, IBV_WC_SUCCESS);
    line.tell(1);
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
      line.tell(1);
      line.hear<int>();
      if (life == 0) return;
      EXPECT_EQ(first_wrong(child.end.memory.data(), 5000, 7), 5000u);
    });
    const Wire of_other = other.line().hear<Wire>(), of_stays = stays.line().hear<Wire>();
    stays.line().tell(of_other);
    stays.line().hear<int>();
    other.line().tell(of_stays);
    other.line().hear<int>();
    if (life == 0) {
      other.kill_it();
      stays.line().tell(1);
    } else {
      stays.line().tell(1);
      stays.line().hear<int>();
      other.line().tell(1);
      EXPECT_EQ(other.join(), 0);
    }
  }
  EXPECT_EQ(stays.join(), 0);
}

}  // namespace
}  // namespace weft::mrc_test
