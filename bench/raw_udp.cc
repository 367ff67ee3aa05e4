// raw_udp: measures UDP between two processes of this machine, without reliability. It sends and
// receives several packets in one system call (a run) with UDP_SEGMENT and UDP_GRO. Each packet is
// a header and a piece of a large buffer; the receiver copies the piece to its place in another
// large buffer. For flow control the receiver counts bytes in shared memory, which costs almost
// nothing.
//
//   raw_udp ADDRESS[,ADDRESS...] [seconds] [packets a run] [payload] [sender's netns] [receiver's netns]
//
// Successive runs go to the addresses in turn. With one packet a run, sendmmsg sends 16 runs at a
// time. Prints Gb/s of payload received.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "raw.h"

namespace {

using raw::Address, raw::enter, raw::fail, raw::large_buffer, raw::parse;

constexpr std::uint16_t kPort = 14'700;
constexpr std::size_t kHeader = 36, kTrailer = 4;
constexpr std::size_t kBuffer = 64u << 20;
constexpr std::uint64_t kWindow = 2u << 20;
constexpr std::size_t kSinglesAtATime = 16;

struct Shared {
  alignas(64) std::atomic<std::uint64_t> received{0};
  alignas(64) std::atomic<bool> ready{false}, stop{false};
};

double now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

void set(int fd, int level, int name, int value) {
  setsockopt(fd, level, name, &value, sizeof(value));
}

void receive(Shared& shared, const Address& at, std::size_t payload) {
  const int fd = socket(at.storage.ss_family, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  set(fd, SOL_SOCKET, SO_RCVBUFFORCE, 4 << 20);
  set(fd, SOL_UDP, UDP_GRO, 1);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&at.storage), at.size) != 0) fail("bind");
  char* const to = large_buffer(kBuffer);
  std::size_t place = 0;
  constexpr int kRuns = 8;
  std::vector<char> runs(kRuns * 65536);
  shared.ready = true;
  const std::size_t packet = kHeader + payload + kTrailer;
  while (!shared.stop) {
    std::array<mmsghdr, kRuns> messages{};
    std::array<iovec, kRuns> pieces;
    for (std::size_t i = 0; i < kRuns; ++i) {
      pieces[i] = {runs.data() + i * 65536, 65536};
      messages[i].msg_hdr.msg_iov = &pieces[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
    const int got = recvmmsg(fd, messages.data(), kRuns, MSG_DONTWAIT, nullptr);
    std::uint64_t bytes = 0;
    for (int i = 0; i < got; ++i) {
      const char* const run = runs.data() + static_cast<std::size_t>(i) * 65536;
      for (std::size_t at_byte = 0;
           at_byte + packet <= messages[static_cast<std::size_t>(i)].msg_len; at_byte += packet) {
        if (place + payload > kBuffer) place = 0;
        std::memcpy(to + place, run + at_byte + kHeader, payload);
        place += payload;
        bytes += payload;
      }
    }
    if (bytes > 0) shared.received.fetch_add(bytes);
  }
  _exit(0);
}

double send(Shared& shared, const std::vector<Address>& addresses, double seconds,
            std::size_t per_run, std::size_t payload) {
  const int fd = socket(addresses[0].storage.ss_family, SOCK_DGRAM, 0);
  std::size_t turn = 0;
  set(fd, SOL_SOCKET, SO_SNDBUFFORCE, 4 << 20);
  const char* const from = large_buffer(kBuffer);
  std::array<char, 64> header{};
  std::size_t place = 0;
  std::uint64_t sent = 0, lost = 0, seen = 0;
  const double start = now();
  double moved = start;
  const std::size_t runs = per_run > 1 ? 1 : kSinglesAtATime;
  const std::size_t bytes = runs * per_run * payload;
  std::vector<iovec> pieces(3 * per_run * runs);
  std::vector<mmsghdr> messages(runs);
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(std::uint16_t))> control{};
  while (now() - start < seconds) {
    const std::uint64_t received = shared.received;
    if (received != seen) {
      seen = received;
      moved = now();
    }
    if (sent - lost - received + bytes > kWindow) {
      // If no byte arrives for 5 ms, count all missing bytes as lost.
      if (now() - moved > 5e-3) lost = sent - received;
      continue;
    }
    for (std::size_t i = 0; i < per_run * runs; ++i) {
      if (place + payload > kBuffer) place = 0;
      pieces[3 * i] = {header.data(), kHeader};
      pieces[3 * i + 1] = {const_cast<char*>(from) + place, payload};
      pieces[3 * i + 2] = {header.data() + kHeader, kTrailer};
      place += payload;
    }
    for (std::size_t i = 0; i < runs; ++i) {
      const Address& to = addresses[turn++ % addresses.size()];
      msghdr& message = messages[i].msg_hdr;
      message = {};
      message.msg_name = const_cast<sockaddr_storage*>(&to.storage);
      message.msg_namelen = to.size;
      message.msg_iov = pieces.data() + 3 * per_run * i;
      message.msg_iovlen = 3 * per_run;
      if (per_run == 1) continue;
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* const c = CMSG_FIRSTHDR(&message);
      c->cmsg_level = SOL_UDP;
      c->cmsg_type = UDP_SEGMENT;
      c->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
      const auto segment = static_cast<std::uint16_t>(kHeader + payload + kTrailer);
      std::memcpy(CMSG_DATA(c), &segment, sizeof(segment));
    }
    const int count = sendmmsg(fd, messages.data(), static_cast<unsigned>(runs), 0);
    if (count < 0) fail("sendmmsg");
    sent += static_cast<std::uint64_t>(count) * per_run * payload;
  }
  const double elapsed = now() - start;
  return static_cast<double>(shared.received) * 8e-9 / elapsed;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr,
                 "usage: raw_udp ADDRESS [seconds] [packets a run] [payload] [sender's netns] "
                 "[receiver's netns]\n");
    return 2;
  }
  std::vector<Address> addresses;
  const std::string list = argv[1];
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    addresses.push_back(parse(list.substr(at, comma - at), kPort));
    at = comma + 1;
  }
  // With several addresses, the receiver must bind to the wildcard address.
  Address address = addresses[0];
  if (addresses.size() > 1) address.set_any();
  const double seconds = argc > 2 ? std::atof(argv[2]) : 1;
  const auto per_run = static_cast<std::size_t>(std::max(argc > 3 ? std::atoi(argv[3]) : 15, 1));
  const auto payload = static_cast<std::size_t>(std::max(argc > 4 ? std::atoi(argv[4]) : 4096, 64));
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("mmap");
  auto& shared = *new (memory) Shared;
  const pid_t child = fork();
  if (child == 0) {
    enter(argc > 6 ? argv[6] : "");
    receive(shared, address, payload);
  }
  enter(argc > 5 ? argv[5] : "");
  while (!shared.ready) {
    if (waitpid(child, nullptr, WNOHANG) != 0) return 1;
  }
  const double gbps = send(shared, addresses, seconds, per_run, payload);
  shared.stop = true;
  waitpid(child, nullptr, 0);
  std::printf("%.3f\n", gbps);
  return 0;
}
