// Two hosts as network namespaces, joined by two links. The constructor creates the namespaces, the
// destructor removes them. Needs root, ip and nft.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>

namespace weft::mrc_test {

inline int shell(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str());
}

// The hosts a and b. Their planes are 10.78.0.0/24 and 10.78.1.0/24.
class TwoHosts {
 public:
  explicit TwoHosts(const std::string& tag) : a_(tag + "a"), b_(tag + "b") {
    made_ = shell("ip netns add " + a_) == 0 && shell("ip netns add " + b_) == 0;
    for (const std::string plane : {"0", "1"}) {
      const std::string link = "p" + plane;
      made_ = made_ && shell("ip link add " + link + " netns " + a_ + " type veth peer name " +
                             link + " netns " + b_) == 0;
      for (const auto& [name, host] : {std::pair(a_, "1"), std::pair(b_, "2")}) {
        const std::string in = "ip -n " + name;
        made_ = made_ &&
                shell(in + " addr add 10.78." + plane + "." + host + "/24 dev " + link) == 0 &&
                shell(in + " link set " + link + " mtu 4200 up") == 0;
      }
    }
    made_ = made_ && shell("ip netns exec " + b_ + " nft list tables") == 0;
  }
  ~TwoHosts() {
    shell("ip netns del " + a_);
    shell("ip netns del " + b_);
  }
  TwoHosts(const TwoHosts&) = delete;
  TwoHosts& operator=(const TwoHosts&) = delete;
  bool made() const { return made_; }

  // Called in a child process: moves the process to that host.
  void enter(int host) const {
    const int fd = open(("/run/netns/" + (host == 1 ? a_ : b_)).c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(setns(fd, CLONE_NEWNET), 0);
    close(fd);
    const std::string self = std::to_string(host), planes = "10.78.0." + self + ",10.78.1." + self;
    ASSERT_EQ(setenv("WEFT_PLANES", planes.c_str(), 1), 0);
  }
  // From now on host b drops every packet of plane 1.
  void kill_plane() const {
    const std::string rules =
        "add table inet weft; add chain inet weft in { type filter hook input priority 0; }; "
        "add rule inet weft in iifname p1 drop";
    ASSERT_EQ(shell("ip netns exec " + b_ + " nft '" + rules + "'"), 0);
  }
  void heal_plane() const {
    ASSERT_EQ(shell("ip netns exec " + b_ + " nft delete table inet weft"), 0);
  }

 private:
  std::string a_, b_;
  bool made_ = false;
};

}  // namespace weft::mrc_test
