// ShmPort: all rings of one process, as one port of its node. A peer's address on this port is its
// address on plane 0, because the port is one more path to the same process.
//
// A ring is lossless and in order. A full ring blocks the whole port as long as its reader makes
// progress. If the reader has made no progress for a while (its process is stopped, or stuck), its
// ring blocks nothing: packets to it are dropped and counted, and QP timers handle the loss. The
// memory and descriptors of a peer that has ended are freed at once. So are those of a peer that
// wrote invalid data into a ring, as its reader or as its writer. In both cases the node is told
// that the peer is gone.
//
// Bounded: links_max rings in each direction. A link allocates only when it is made. Owned by one
// world and used by one thread at a time.
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
  world::PortIndex port = 0;  // the number of this port in the node
  std::size_t ring_bytes = 1u << 20;
  std::uint32_t links_max = 255;
};

class ShmPort {
 public:
  // All packets of this port have this EV, because there is one path to each peer.
  static constexpr std::uint32_t kEv = 0;

  // Errors: kExhausted, kSystem.
  static Result<std::unique_ptr<ShmPort>> open(const ShmPortConfig& config);
  ~ShmPort();

  // Connects to a process over shared memory. True if the peer can be reached over shared memory,
  // now and until it ends.
  bool reach(const world::Address& peer);

  // Gives the next records of one peer to the node; the peers take turns. True if there were any
  // records.
  bool receive(Time now, world::Node& node);

  // Tells the node which peers have gone: their socket hung up, a send to them failed, or their
  // ring is broken.
  void report_refusals(Time now, world::Node& node);

  // The packets that may be sent now: the least room among the rings that are not stuck.
  world::PortRoom room(Time now);
  // REQUIRES that room() allows another packet.
  void send(const world::Datagram& datagram);
  // To be called after sends: wakes sleeping readers.
  void flush();

  // Handles new connections, hangups and wake-ups; costs a system call. To be called from time to
  // time, and after each sleep.
  void handle_events();
  // Marks this end as sleeping in every ring. False: there is work to do, so do not sleep. After a
  // true result call wake() when awake.
  bool sleep();
  void wake();
  // A descriptor to poll while asleep: readable when handle_events() has something to do.
  int fd() const { return epoll_fd_; }

  // For a forked child: closes the descriptors, so that peers see when the parent ends. abandon()
  // calls only close(), and nothing else of this object may be called afterwards.
  void abandon();

  std::uint32_t link_count() const {
    return static_cast<std::uint32_t>(readers_.size() + writers_.size());
  }
  // The counters net.shm_*.
  CounterTable counters() const;

 private:
  struct In {  // a ring that a peer writes and we read
    ShmSocket socket;
    world::Address from{};
    ShmMemory memory;
    std::optional<ShmReader> reader;  // none before the greeting arrived
    bool gone = false;                // the peer has gone; its earlier records are still read
    std::uint64_t taken_max = 0;      // position up to which they are read
  };
  struct Out {
    ShmSocket socket;
    world::Address to{};
    ShmMemory memory;
    std::optional<ShmWriter> writer;
    bool used = false;   // packets were sent since the last flush()
    bool stuck = false;  // its reader makes no progress
    Time full_since = kNever;
  };
  struct Counters {
    std::uint64_t links = 0, refused = 0, broken = 0, gone = 0;
    std::uint64_t packets_sent = 0, packets_received = 0, calls = 0;
    std::uint64_t drops_gone = 0, drops_full = 0;
    // Bytes copied in bulk, and how many of those with CopyRoutine::kPastCaches.
    std::uint64_t bulk_bytes = 0, bulk_past_caches = 0;
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
  std::vector<world::Address> gone_;  // not reported to the node yet; capacity links_max
  std::size_t turn_ = 0;
  std::vector<world::Datagram> batch_;
  std::vector<std::array<std::byte, kShmHeaderMax>> headers_;
  CopyChoice copies_{CopyChoice::kWriterStay};  // one for all rings, because it times this thread
  Counters counters_;
};

}  // namespace weft::net
