// A process checks the greeting of a peer that offers shared memory.
#include "net/shm_link.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>

namespace weft::net {
namespace {

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

// Sends a greeting with `descriptors` descriptors of memory.
void greet_with(int fd, std::size_t descriptors) {
  std::array<char, 26> words{};
  iovec piece{words.data(), words.size()};
  alignas(cmsghdr) std::array<char, 256> control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(descriptors * sizeof(int));
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(descriptors * sizeof(int));
  const int memory = memfd_create("weft-test", MFD_CLOEXEC);
  for (std::size_t i = 0; i < descriptors; ++i)
    std::memcpy(CMSG_DATA(header) + i * sizeof(int), &memory, sizeof(memory));
  EXPECT_EQ(sendmsg(fd, &message, 0), static_cast<ssize_t>(words.size()));
  close(memory);
}

TEST(ShmLink, RefusedGreetingLeavesNoDescriptorOpen) {
  std::array<int, 2> pair{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()), 0);
  const ShmSocket ours(pair[0]), theirs(pair[1]);
  const std::size_t before = open_descriptors();
  for (const std::size_t count : {1u, 2u, 3u, 8u}) {
    greet_with(theirs.fd(), count);
    EXPECT_FALSE(shm_greeting(ours)) << count;
    EXPECT_EQ(open_descriptors(), before) << count;
  }
}

}  // namespace
}  // namespace weft::net
