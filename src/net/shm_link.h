// How two processes of one host get a ring in shared memory. Each process listens on a unix socket
// whose name follows from its first address and its slot. The process that connects passes the
// memory of the ring over this socket.
//
// The names are abstract. Each network namespace has its own, so that "same name" means "same host"
// for containers and for the lab, and vanish with their process. Only processes of one user share
// memory (SO_PEERCRED, checked by both sides). A link has one direction, from the process that
// connected to the one that listens: two processes that connect to each other at the same time make
// two links and need no agreement. The socket stays open: a byte on it wakes the peer, and its
// hangup shows that the peer has ended, also after kill -9.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "net/shm_memory.h"
#include "world/world.h"

namespace weft::net {

class ShmSocket {
 public:
  ShmSocket() = default;
  explicit ShmSocket(int fd) : fd_(fd) {}
  ShmSocket(ShmSocket&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  ShmSocket& operator=(ShmSocket&& other) noexcept;
  ~ShmSocket();

  int fd() const { return fd_; }
  // True if the peer process runs as the same user as this one.
  bool is_same_user() const;
  // Wakes the peer from poll(). Never blocks: if the socket is full, earlier bytes wake the peer
  // anyway.
  void call();
  // Reads and discards the peer's wake-up bytes. False: the peer has ended.
  bool take_wakeups();

 private:
  int fd_ = -1;
};

// Listens for connections to `self`. Errors: kExhausted when the name is taken, kSystem.
Result<ShmSocket> shm_listen(const world::Address& self);

// The writer's end of a link.
struct ShmOffer {
  ShmSocket socket;
  ShmMemory memory;
};
struct ShmOfferOptions {
  world::Address self, peer;
  std::size_t capacity = 0;  // of the ring, as for ShmMemory::create()
};
// Connects to the process with address `to` and gives it a new ring. Does not wait until the peer
// accepts; records written before that are not lost. Errors: kNotFound when no such process runs on
// this host, or it belongs to another user; kSystem.
Result<ShmOffer> shm_connect(const ShmOfferOptions& options);

// The next connection; nullopt if there is none.
std::optional<ShmSocket> shm_accept(const ShmSocket& listener);

// The first message of a process that connected: its address and the ring that it writes to.
// Errors: kNotFound when the greeting has not arrived yet; after kInvalid or kSystem the socket
// must be closed.
struct ShmGreeting {
  world::Address from;
  ShmMemory memory;
};
Result<ShmGreeting> shm_greeting(const ShmSocket& socket);

}  // namespace weft::net
