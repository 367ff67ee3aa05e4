// ShmPort: all rings of one process, as one port of its node. A peer's address on this port is its
// address on plane 0: the port is one more way to the same process.
//
// A ring is lossless and in order. One that is full holds back the whole port, for as long as its
// reader moves at all; a reader that has not moved for a while (stopped, or stuck) holds back nobody:
// what is sent to it is dropped and counted, and its QPs' timers deal with it. A peer that is gone
// frees its memory and descriptors at once; so does one that wrote nonsense into a ring, whichever of
// its ends is the peer's, and the node is told that it is gone.
//
// Bounded: links_max rings each way. Everything of a link is taken when it is made. Owned by one
// world; one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/counters.h"
#include "base/result.h"
#include "net/bulk_copy.h"
#include "net/shm_link.h"
#include "net/shm_ring.h"
#include "world/world.h"

namespace weft::net {

struct ShmPortConfig {
  world::Address self;        // on plane 0
  world::PortIndex port = 0;  // what the node knows this port as
  std::size_t ring_bytes = 1u << 20;
  std::uint32_t links_max = 255;
};

class ShmPort {
 public:
  // The one EV of the port: there is one path to each peer.
  static constexpr std::uint32_t kEv = 0;

  // Errors: kExhausted, kSystem.
  static Result<std::unique_ptr<ShmPort>> open(const ShmPortConfig& config);
  ~ShmPort();

  // True if that process can be reached over shared memory; it is from here on, until it is gone.
  bool reach(const world::Address& peer);

  // Gives the next records of one peer to the node; peers take turns. True if there were any.
  bool receive(Time now, world::Node& node);

  // Says to the node which peers turned out to be gone, by their hangup, when something was sent to
  // them, or because a ring was broken.
  void tell_refusals(Time now, world::Node& node);

  // What every living link takes now.
  world::PortRoom room(Time now);
  // REQUIRES room for it, in the sense of room().
  void send(const world::Datagram& datagram);
  // After sends: wakes who sleeps.
  void flush();

  // A system call: who connected, who is gone, who calls. Now and then, and after sleeping.
  void look();
  // Says in every ring that we sleep. False: there is something to do. After true, wake().
  bool sleep();
  void wake();
  // Readable when look() has something to do, and to be polled while asleep.
  int fd() const { return epoll_fd_; }

  // In a forked child: lets go of the descriptors, so that peers see when the parent ends. Nothing but
  // close() is called, and nothing else of this object may be called afterwards.
  void abandon();

  std::uint32_t link_count() const {
    return static_cast<std::uint32_t>(readers_.size() + writers_.size());
  }
  // net.shm_*
  CounterTable counters() const;

 private:
  struct In {  // what a peer writes and we read
    ShmSocket socket;
    world::Address from{};
    ShmMemory memory;
    std::optional<ShmReader> reader;  // none before its greeting
    bool gone = false;                // what it wrote before is still taken,
    std::uint64_t taken_max = 0;      // up to here
  };
  struct Out {
    ShmSocket socket;
    world::Address to{};
    ShmMemory memory;
    std::optional<ShmWriter> writer;
    bool used = false;   // since the last flush
    bool stuck = false;  // its reader does not move
    Time full_since = kNever;
  };
  struct Counters {
    std::uint64_t links = 0, refused = 0, broken = 0, gone = 0;
    std::uint64_t packets_sent = 0, packets_received = 0, calls = 0;
    std::uint64_t drops_gone = 0, drops_full = 0;
    std::uint64_t bulk_bytes = 0, bulk_past_caches = 0;  // copied in bulk; and of those
  };

  explicit ShmPort(const ShmPortConfig& config);
  Out* find(const world::Address& to);
  bool watch(const ShmSocket& socket);
  void accept_all();
  void greet(In& in);
  bool receive_from(In& in, Time now, world::Node& node);
  void call(ShmSocket& socket);
  void note_gone(const world::Address& peer);
  void note_broken(const world::Address& peer);
  void close_broken_writers();

  ShmPortConfig config_;
  ShmSocket listener_;
  int epoll_fd_ = -1;
  std::vector<std::unique_ptr<In>> readers_;
  std::vector<std::unique_ptr<Out>> writers_;
  std::vector<world::Address> gone_;  // not yet told; capacity links_max
  std::size_t turn_ = 0;
  std::vector<world::Datagram> batch_;
  std::vector<std::array<std::byte, kShmHeaderMax>> headers_;
  CopyChoice copies_{CopyChoice::kWriterStay};  // one for all rings: what is timed is this thread
  Counters counters_;
};

}  // namespace weft::net
