// How two processes of one host come to share a ring: each listens on a unix socket whose name
// follows from its first address and its slot, and connecting to it hands over the ring's memory.
//
// Names are abstract: they live in the network namespace, so that "same name" means "same host" to
// containers and to the lab, and vanish with their process. Only processes of one user share memory
// (SO_PEERCRED, asked by both sides). A link goes one way, from the process that connected to the
// one that listens: two processes that connect to each other at the same time make two links and
// need no agreement. The socket stays: a word on it wakes the other end, and its hangup tells that
// the other end is gone, also after kill -9.
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
  // True if the process at the other end runs as the same user as this one.
  bool is_same_user() const;
  // Makes a poll of the other end return. Never waits: if the socket is full the other end has
  // enough to wake up for.
  void call();
  // Takes the calls that came. False: the other end is gone.
  bool take_calls();

 private:
  int fd_ = -1;
};

// Where others reach `self`. Errors: kExhausted when the name is taken, kSystem.
Result<ShmSocket> shm_listen(const world::Address& self);

// The writer's side of a link.
struct ShmOffer {
  ShmSocket socket;
  ShmMemory memory;
};
struct ShmOfferOptions {
  world::Address self, peer;
  std::size_t capacity = 0;  // as ShmMemory::create
};
// Does not wait for the peer: what is written before it looks is there when it does. Errors:
// kNotFound when there is no such process on this host, or it is another user's; kSystem.
Result<ShmOffer> shm_connect(const ShmOfferOptions& options);

// One who connected: next without a value while there is nobody.
std::optional<ShmSocket> shm_accept(const ShmSocket& listener);

// What the one who connected said: who it is, and the ring it writes to. Errors: kInvalid and
// kSystem: close the socket; kNotFound: nothing said yet.
struct ShmGreeting {
  world::Address from;
  ShmMemory memory;
};
Result<ShmGreeting> shm_greeting(const ShmSocket& socket);

}  // namespace weft::net
