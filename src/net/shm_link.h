// How two processes of one host come to share a ring. Each listens on a unix socket whose name
// follows from its first address and its slot. The process that connects passes the ring's memory
// over it.
//
// Names are abstract. They belong to a network namespace, so that "same name" means "same host" for
// containers and for the lab, and vanish with their process. Only processes of one user share
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
  // Wakes the peer from poll(). Never blocks: if the socket is full, the peer has enough to wake
  // it.
  void call();
  // Reads the wake-up bytes of the peer. False: the peer has ended.
  bool take_calls();

 private:
  int fd_ = -1;
};

// Listens for connections to `self`. Errors: kExhausted when the name is taken, kSystem.
Result<ShmSocket> shm_listen(const world::Address& self);

// The writer's side of a link.
struct ShmOffer {
  ShmSocket socket;
  ShmMemory memory;
};
struct ShmOfferOptions {
  world::Address self, peer;
  std::size_t capacity = 0;  // as for ShmMemory::create
};
// Does not wait for the peer to accept: records that are written before are read afterwards.
// Errors: kNotFound when there is no such process on this host or it belongs to another user;
// kSystem.
Result<ShmOffer> shm_connect(const ShmOfferOptions& options);

// The next connection; nullopt if there is none.
std::optional<ShmSocket> shm_accept(const ShmSocket& listener);

// The greeting of a process that connected: its address and the ring that it writes to. Errors:
// kNotFound when it has not arrived yet; after kInvalid or kSystem the socket must be closed.
struct ShmGreeting {
  world::Address from;
  ShmMemory memory;
};
Result<ShmGreeting> shm_greeting(const ShmSocket& socket);

}  // namespace weft::net
