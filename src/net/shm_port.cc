#include "net/shm_port.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace weft::net {
namespace {

// The most records that the node gets in one call. Few, so that the writer gets space back while we
// still copy later records.
constexpr std::size_t kBatchMax = 32;
constexpr std::size_t kBatchBytes = 256u << 10;
// If a ring is full for this long, its reader counts as stuck.
constexpr Duration kStuck = Duration::ms(100);
// The most room reported to the node. Limited, because readers that sleep are woken only by flush().
constexpr std::uint32_t kRoomMax = 64;

std::uint16_t to_note(const world::Datagram& d) {
  return static_cast<std::uint16_t>(static_cast<unsigned>(d.dscp) << 2 |
                                    static_cast<unsigned>(d.ecn));
}

}  // namespace

ShmPort::ShmPort(const ShmPortConfig& config)
    : config_(config), epoll_fd_(epoll_create1(EPOLL_CLOEXEC)), headers_(kBatchMax) {
  readers_.reserve(config.links_max);
  writers_.reserve(config.links_max);
  gone_.reserve(config.links_max);
  batch_.reserve(kBatchMax);
}

ShmPort::~ShmPort() {
  if (epoll_fd_ >= 0) close(epoll_fd_);
}

Result<std::unique_ptr<ShmPort>> ShmPort::open(const ShmPortConfig& config) {
  std::unique_ptr<ShmPort> port(new ShmPort(config));
  if (port->epoll_fd_ < 0)
    return Error{ErrorKind::kSystem, std::string("epoll: ") + std::strerror(errno)};
  WEFT_TRY(port->listener_, shm_listen(config.self));
  if (!port->watch(port->listener_))
    return Error{ErrorKind::kSystem, std::string("epoll: ") + std::strerror(errno)};
  return port;
}

void ShmPort::abandon() {
  close(epoll_fd_);
  close(listener_.fd());
  for (const auto& in : readers_) close(in->socket.fd());
  for (const auto& out : writers_) close(out->socket.fd());
}

bool ShmPort::watch(const ShmSocket& socket) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = socket.fd();
  return epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, socket.fd(), &event) == 0;
}

ShmPort::Out* ShmPort::find(const world::Address& to) {
  for (const auto& out : writers_) {
    if (out->to == to) return out.get();
  }
  return nullptr;
}

bool ShmPort::reach(const world::Address& peer) {
  handle_events();  // learns whether a predecessor in the same slot has ended
  if (find(peer) != nullptr) return true;
  if (writers_.size() >= config_.links_max) return false;
  auto offer = shm_connect({.self = config_.self, .peer = peer, .capacity = config_.ring_bytes});
  if (!offer || !watch(offer->socket)) return false;
  auto out = std::make_unique<Out>();
  out->socket = std::move(offer->socket);
  out->to = peer;
  out->memory = std::move(offer->memory);
  out->writer.emplace(out->memory);
  writers_.push_back(std::move(out));
  ++counters_.links;
  return true;
}

// --- sockets -----------------------------------------------------------------------------------

void ShmPort::accept_all() {
  // Bounded, so that processes that keep connecting do not block this process.
  for (int i = 0; i < 16; ++i) {
    auto socket = shm_accept(listener_);
    if (!socket) return;
    if (readers_.size() >= config_.links_max || !watch(*socket)) {
      ++counters_.refused;
      continue;
    }
    auto in = std::make_unique<In>();
    in->socket = std::move(*socket);
    greet(*in);
    if (!in->gone) readers_.push_back(std::move(in));
  }
}

void ShmPort::greet(In& in) {
  auto greeting = shm_greeting(in.socket);
  if (!greeting) {
    if (greeting.error().kind == ErrorKind::kNotFound) return;  // the greeting has not arrived yet
    ++counters_.refused;
    in.gone = true;
    return;
  }
  in.from = greeting->from;
  in.memory = std::move(greeting->memory);
  in.reader.emplace(in.memory);
  ++counters_.links;
}

void ShmPort::handle_events() {
  std::array<epoll_event, 32> events;
  const int count = epoll_wait(epoll_fd_, events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const int fd = events[static_cast<std::size_t>(i)].data.fd;
    if (fd == listener_.fd()) {
      accept_all();
      continue;
    }
    for (const auto& in : readers_) {
      if (in->socket.fd() != fd) continue;
      if (!in->reader) greet(*in);
      if (!in->socket.take_wakeups() && !in->gone) {
        in->gone = true;
        in->taken_max = in->reader ? in->reader->taken() + in->memory.capacity() : 0;
        // Stops watching the socket of a peer that has gone. Records left in its ring are still
        // read.
        epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
      }
    }
    std::erase_if(writers_, [this, fd](const auto& out) {
      const bool gone = out->socket.fd() == fd && !out->socket.take_wakeups();
      counters_.gone += gone ? 1 : 0;
      if (gone) note_gone(out->to);
      return gone;
    });
  }
  std::erase_if(readers_, [](const auto& in) { return in->gone && !in->reader; });
}

void ShmPort::note_gone(const world::Address& peer) {
  const bool known = std::find(gone_.begin(), gone_.end(), peer) != gone_.end();
  if (!known && gone_.size() < gone_.capacity()) gone_.push_back(peer);
}

// A broken ring is closed, so its peer cannot be reached over it. Telling the node saves the peer's
// QPs from waiting for their timers.
void ShmPort::note_broken(const world::Address& peer) {
  ++counters_.broken;
  note_gone(peer);
}

void ShmPort::report_refusals(Time now, world::Node& node) {
  while (!gone_.empty()) {
    const auto note = world::Datagram::refusal(config_.port, gone_.back());
    gone_.pop_back();
    node.on_datagrams(now, {&note, 1});
  }
}

void ShmPort::call(ShmSocket& socket) {
  ++counters_.calls;
  socket.call();
}

bool ShmPort::sleep() {
  bool nothing = gone_.empty();  // a peer that has gone must be reported to the node first
  for (const auto& in : readers_) nothing &= !in->reader || in->gone || in->reader->sleep();
  // If a ring is full, its reader must wake us when there is space.
  for (const auto& out : writers_) {
    if (out->full_since != kNever && !out->stuck) nothing &= out->writer->sleep();
  }
  if (!nothing) wake();
  return nothing;
}

void ShmPort::wake() {
  for (const auto& in : readers_) {
    if (in->reader) in->reader->wake();
  }
  for (const auto& out : writers_) {
    if (out->full_since != kNever) out->writer->wake();
  }
}

// --- receiving ---------------------------------------------------------------------------------

bool ShmPort::receive(Time now, world::Node& node) {
  for (std::size_t tried = 0; tried < readers_.size(); ++tried) {
    if (turn_ >= readers_.size()) turn_ = 0;
    In& in = *readers_[turn_];
    const bool came = in.reader && receive_from(in, now, node);
    const bool over = in.reader && (in.reader->is_broken() ||
                                    (in.gone && (!came || in.reader->taken() >= in.taken_max)));
    if (over) {
      if (in.reader->is_broken()) note_broken(in.from);
      readers_.erase(readers_.begin() + static_cast<std::ptrdiff_t>(turn_));
    } else {
      ++turn_;
    }
    if (came) return true;
  }
  return false;
}

bool ShmPort::receive_from(In& in, Time now, world::Node& node) {
  batch_.clear();
  std::size_t bytes = 0;
  ShmReader::Record record;
  while (batch_.size() < kBatchMax && bytes < kBatchBytes) {
    auto& header = headers_[batch_.size()];
    if (!in.reader->next(header, record)) break;
    bytes += record.payload.size();
    batch_.push_back({.port = config_.port,
                      .ecn = static_cast<world::Ecn>(record.note & 3),
                      .dscp = static_cast<world::Dscp>(record.note >> 2 & 63),
                      .intact = true,
                      .entropy = kEv,
                      .received_at = now,
                      .peer = in.from,
                      .header = ConstBytes(header).first(record.header_size),
                      .payload = {.at = reinterpret_cast<std::uintptr_t>(record.payload.data()),
                                  .size = static_cast<std::uint32_t>(record.payload.size())}});
  }
  if (batch_.empty()) return false;
  counters_.packets_received += batch_.size();
  node.on_datagrams(now, batch_);
  if (in.reader->release()) call(in.socket);
  return true;
}

// --- sending -----------------------------------------------------------------------------------

world::PortRoom ShmPort::room(Time now) {
  copies_.look(now, counters_.bulk_bytes);
  std::uint32_t least = kRoomMax;
  bool any_broken = false;
  for (const auto& out : writers_) {
    const std::uint32_t room = out->writer->room();
    if (out->writer->is_broken()) {  // a broken ring accepts nothing, and must not block the others
      any_broken = true;
      continue;
    }
    if (room > 0) {
      out->full_since = kNever;
      out->stuck = false;
    } else {
      if (out->full_since == kNever) out->full_since = now;
      out->stuck = now - out->full_since > kStuck;
    }
    if (!out->stuck) least = std::min(least, room);
  }
  if (any_broken) close_broken_writers();
  return {.packets = least};
}

void ShmPort::close_broken_writers() {
  std::erase_if(writers_, [this](const auto& out) {
    const bool broken = out->writer->is_broken();
    if (broken) note_broken(out->to);
    return broken;
  });
}

void ShmPort::send(const world::Datagram& d) {
  Out* const out = find(d.peer);
  if (out == nullptr) {
    ++counters_.drops_gone;
    return note_gone(d.peer);
  }
  if (out->writer->room() == 0) {
    ++counters_.drops_full;
    return;
  }
  out->writer->push({.header = d.header,
                     .payload = {reinterpret_cast<const std::byte*>(d.payload.at), d.payload.size},
                     .note = to_note(d),
                     .routine = copies_.routine()});
  if (d.payload.size >= kBulkMin) {
    counters_.bulk_bytes += d.payload.size;
    if (copies_.routine() == CopyRoutine::kPastCaches) counters_.bulk_past_caches += d.payload.size;
  }
  out->used = true;
  ++counters_.packets_sent;
}

void ShmPort::flush() {
  for (const auto& out : writers_) {
    if (!out->used) continue;
    out->used = false;
    if (out->writer->take_reader_asleep()) call(out->socket);
  }
}

CounterTable ShmPort::counters() const {
  return {{"net.shm_links", "links", counters_.links},
          {"net.shm_links_refused", "links", counters_.refused},
          {"net.shm_links_broken", "links", counters_.broken},
          {"net.shm_peers_gone", "peers", counters_.gone},
          {"net.shm_packets_sent", "packets", counters_.packets_sent},
          {"net.shm_packets_received", "packets", counters_.packets_received},
          {"net.shm_calls", "calls", counters_.calls},
          {"net.shm_drops", "packets", counters_.drops_gone, {.reason = "gone"}},
          {"net.shm_drops", "packets", counters_.drops_full, {.reason = "full"}},
          {"net.shm_bulk_bytes", "bytes", counters_.bulk_bytes},
          {"net.shm_bulk_past_caches", "bytes", counters_.bulk_past_caches}};
}

}  // namespace weft::net
