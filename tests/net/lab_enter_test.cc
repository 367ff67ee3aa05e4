// A process that has entered a lab can open namespaces by path, and break and heal links, as `weft
// lab run` with sockets in several hosts does. The test runs in a child, because a process cannot
// leave a lab.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "lab/lab.h"

namespace weft::net {
namespace {

// Uses the lab from inside. True if all of it works; otherwise prints to stderr what went wrong.
bool works_inside(lab::Lab& lab) {
  const auto fine = [](const Result<void>& result, const char* what) {
    if (!result) std::fprintf(stderr, "%s: %s\n", what, result.error().message.c_str());
    return result.has_value();
  };
  if (!fine(lab.enter(), "enter")) return false;
  for (fabric::HostIndex host = 0; host < 2; ++host) {
    if (access(lab.namespace_path(host).c_str(), F_OK) != 0) return false;
  }
  fabric::FaultEvent down;
  down.action = fabric::FaultAction::kLinkDown;
  down.link = lab.plan().topology().host_down(0, 1);
  if (!fine(lab.apply(down), "apply") || lab.state().faults.cut.size() != 1) return false;
  if (!fine(lab.heal(), "heal") || !fine(lab.enter(1), "enter a host")) return false;
  return lab.traffic().has_value();
}

void try_it(bool user_namespace) {
  lab::LabSpec spec;
  spec.name = "enter" + std::to_string(getpid()) + (user_namespace ? "u" : "r");
  spec.topology = {.shape = fabric::Shape::kSingle, .hosts = 2, .host_rate = Rate::gbps(1)};
  spec.user_namespace = user_namespace;
  auto lab = lab::Lab::up(spec);
  if (!lab) {
    // These errors mean that labs are not possible on this machine; any other error is a defect.
    const bool lacks =
        lab.error().kind == ErrorKind::kUnsupported || lab.error().kind == ErrorKind::kNotFound;
    if (lacks) GTEST_SKIP() << lab.error().message;
    FAIL() << lab.error().message;
  }
  const pid_t child = fork();
  if (child == 0) _exit(works_inside(*lab) ? 0 : 1);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  const auto down = lab::Lab::down(spec.name);
  EXPECT_TRUE(down) << down.error().message;
  EXPECT_FALSE(lab::Lab::open(spec.name));
}

TEST(LabEnter, ALabCanBeUsedFromInsideWithThePrivilegesOfThisUser) { try_it(false); }
TEST(LabEnter, ALabCanBeUsedFromInsideInAUserNamespace) { try_it(true); }

}  // namespace
}  // namespace weft::net
