#include "seal/session_table.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/assert.h"
#include "wire/layout.h"
#include "wire/packet.h"

namespace weft::seal {
namespace {

std::uint32_t dest_qpn(ConstBytes header) {
  return base::load32(header, wire::bth_at::kQpnWord) & wire::kQpnMask;
}

}  // namespace

Result<std::unique_ptr<SessionTable>> SessionTable::create(const SessionTableConfig& config) {
  WEFT_TRY(const KeySchedule keys, KeySchedule::from_secret(config.job_secret));
  WEFT_TRY(const SessionRandom drawn, draw_random());
  std::unique_ptr<SessionTable> out(new SessionTable(keys));
  out->config_ = config;
  out->config_.job_secret = {};  // only create() needs it; the caller may release its bytes
  out->incarnation_ = base::load64(ConstBytes(drawn), 0);
  out->due_.reserve(2);
  return out;
}

// --- set-up ------------------------------------------------------------------------------------

Result<std::unique_ptr<SecureSession>> SessionTable::make_session(std::uint32_t local_qpn,
                                                                  const EndId& peer) {
  WEFT_TRY(const SessionRandom drawn, draw_random());
  return std::make_unique<SecureSession>(
      keys_,
      SecureSession::Config{
          .self = {.incarnation = incarnation_, .process = config_.process, .qpn = local_qpn},
          .peer = peer,
          .drawn = drawn,
          .epoch_shift = config_.epoch_shift});
}

// A free place for another peer. A peer without QPs keeps its place until another peer needs it:
// its process may get QPs later, and the keys of the endpoints are made only once.
Result<std::uint32_t> SessionTable::free_peer() const {
  if (peers_.size() < config_.peers_max) return static_cast<std::uint32_t>(peers_.size());
  for (std::uint32_t i = 0; i < peers_.size(); ++i) {
    const auto is_of = [i](const Entry& entry) { return entry.peer == i; };
    if (std::none_of(entries_.begin(), entries_.end(), is_of)) return i;
  }
  return Error{ErrorKind::kExhausted, "no room for another secured peer"};
}

// Returns the index of the peer, which has a session for endpoint packets. A process with the
// addresses of an earlier process replaces it.
Result<std::uint32_t> SessionTable::place_peer(const SecurePeer& peer) {
  const EndId id{
      .incarnation = peer.incarnation, .process = peer.ports[0].process, .qpn = wire::kEndpointQpn};
  std::uint32_t index = find_peer(peer.ports[0]);
  const bool named = peer.incarnation != 0;
  if (index == kNobody) {
    WEFT_TRY(index, free_peer());
    std::unique_ptr<SecureSession> session;
    if (named) {
      WEFT_TRY(session, make_session(wire::kEndpointQpn, id));
    }
    if (index == peers_.size()) peers_.emplace_back();
    peers_[index].endpoints = std::move(session);
  } else if (named &&
             (peers_[index].endpoints == nullptr || peers_[index].endpoints->peer() != id)) {
    WEFT_TRY(peers_[index].endpoints, make_session(wire::kEndpointQpn, id));
  }
  Peer& at = peers_[index];
  at.ports.assign(peer.ports.begin(), peer.ports.end());
  std::erase_if(places_, [index](const Place& p) { return p.peer == index; });
  for (const world::Address& address : at.ports) {
    std::erase_if(places_, [&](const Place& p) { return p.address == address; });
    places_.push_back({.address = address, .peer = index});
  }
  std::sort(places_.begin(), places_.end(),
            [](const Place& a, const Place& b) { return a.address < b.address; });
  return index;
}

Result<void> SessionTable::secure(Time now, std::uint32_t local_qpn, const SecurePeer& peer) {
  if (peer.ports.empty()) return Error{ErrorKind::kInvalid, "a secured peer has an address"};
  if (peer.incarnation == incarnation_)
    return Error{ErrorKind::kInvalid, "a process cannot secure a connection to itself"};
  close(local_qpn);
  if (entries_.size() == config_.qps_max)
    return Error{ErrorKind::kExhausted, "no room for another secured QP"};
  WEFT_TRY(const std::uint32_t index, place_peer(peer));
  WEFT_TRY(auto session, make_session(local_qpn, {.incarnation = peer.incarnation,
                                                  .process = peer.ports[0].process,
                                                  .qpn = peer.qpn}));
  std::erase_if(routes_, [&](const Route& r) { return r.peer == index && r.peer_qpn == peer.qpn; });
  routes_.push_back({.peer = index, .peer_qpn = peer.qpn, .local_qpn = local_qpn});
  std::sort(routes_.begin(), routes_.end(), [](const Route& a, const Route& b) {
    return std::tie(a.peer, a.peer_qpn) < std::tie(b.peer, b.peer_qpn);
  });
  const auto at =
      std::lower_bound(entries_.begin(), entries_.end(), local_qpn,
                       [](const Entry& entry, std::uint32_t qpn) { return entry.local_qpn < qpn; });
  const Entry& added =
      *entries_.insert(at, {.local_qpn = local_qpn, .peer = index, .session = std::move(session)});
  last_outgoing_ = {};
  queue_hello(added.session->poll_hello(now), index);
  if (peers_[index].endpoints != nullptr)
    queue_hello(peers_[index].endpoints->poll_hello(now), index);
  return {};
}

bool SessionTable::close(std::uint32_t local_qpn) {
  last_outgoing_ = {};
  std::erase_if(routes_, [&](const Route& r) { return r.local_qpn == local_qpn; });
  return std::erase_if(entries_, [&](const Entry& e) { return e.local_qpn == local_qpn; }) > 0;
}

// --- lookup ------------------------------------------------------------------------------------

std::uint32_t SessionTable::find_peer(const world::Address& address) const {
  const auto at =
      std::lower_bound(places_.begin(), places_.end(), address,
                       [](const Place& p, const world::Address& a) { return p.address < a; });
  return at != places_.end() && at->address == address ? at->peer : kNobody;
}

SessionTable::Entry* SessionTable::find_entry(std::uint32_t local_qpn) {
  const auto at =
      std::lower_bound(entries_.begin(), entries_.end(), local_qpn,
                       [](const Entry& e, std::uint32_t qpn) { return e.local_qpn < qpn; });
  return at != entries_.end() && at->local_qpn == local_qpn ? &*at : nullptr;
}

SessionTable::Entry* SessionTable::find_route(std::uint32_t peer, std::uint32_t peer_qpn) {
  const auto at = std::lower_bound(
      routes_.begin(), routes_.end(), std::tie(peer, peer_qpn),
      [](const Route& r, const auto& wanted) { return std::tie(r.peer, r.peer_qpn) < wanted; });
  if (at == routes_.end() || at->peer != peer || at->peer_qpn != peer_qpn) return nullptr;
  return find_entry(at->local_qpn);
}

SessionTable::Found SessionTable::find_outgoing(const world::Address& to, std::uint32_t qpn) {
  if (last_outgoing_.found.session != nullptr && last_outgoing_.qpn == qpn &&
      last_outgoing_.address == to) {
    return last_outgoing_.found;
  }
  Found found{.peer = find_peer(to)};
  if (found.peer == kNobody) return found;
  if (qpn == wire::kEndpointQpn) {
    found.session = peers_[found.peer].endpoints.get();
  } else if (Entry* const entry = find_route(found.peer, qpn)) {
    found.session = entry->session.get();
  }
  last_outgoing_ = {.address = to, .qpn = qpn, .found = found};
  return found;
}

SessionTable::Found SessionTable::find_incoming(const world::Address& from, std::uint32_t qpn) {
  if (qpn == wire::kEndpointQpn) {
    const std::uint32_t peer = find_peer(from);
    if (peer == kNobody) return {};
    return {.session = peers_[peer].endpoints.get(), .peer = peer};
  }
  Entry* const entry = find_entry(qpn);
  if (entry == nullptr) return {};
  return {.session = entry->session.get(), .peer = entry->peer};
}

// --- packets -----------------------------------------------------------------------------------

void SessionTable::queue_hello(std::optional<SecureHello> hello, std::uint32_t peer) {
  if (hello && due_.size() < due_.capacity()) due_.push_back({.hello = *hello, .peer = peer});
}

std::optional<SessionTable::HelloOut> SessionTable::poll_hello() {
  if (due_.empty()) return std::nullopt;
  const Due due = due_.back();
  due_.pop_back();
  return HelloOut{.to = peers_[due.peer].ports, .packet = due.hello.emit(keys_)};
}

std::size_t SessionTable::seal(Time now, const world::Datagram& datagram, std::uint32_t ev,
                               Bytes out) {
  const Found found = find_outgoing(datagram.peer, dest_qpn(datagram.header));
  if (found.session == nullptr) return 0;
  if (!found.session->is_established()) {
    queue_hello(found.session->poll_hello(now), found.peer);
    return 0;
  }
  return found.session->out().seal(
      {.header = datagram.header,
       .payload = {reinterpret_cast<const std::byte*>(datagram.payload.at), datagram.payload.size},
       .ev = ev},
      out);
}

Result<void, DropReason> SessionTable::on_hello(Time now, ConstBytes packet) {
  const auto hello = parse_hello(packet, keys_);
  if (!hello) return hello.error();
  Found found;
  if (hello->to.qpn != wire::kEndpointQpn) {
    found = find_incoming({}, hello->to.qpn);
  } else {
    // The sender's address proves nothing, so the session is found by the ends that the hello
    // names.
    for (std::uint32_t i = 0; i < peers_.size() && found.session == nullptr; ++i) {
      if (peers_[i].endpoints != nullptr && peers_[i].endpoints->peer() == hello->from)
        found = {.session = peers_[i].endpoints.get(), .peer = i};
    }
  }
  if (found.session == nullptr) return DropReason::kNoSession;
  const bool had_keys = found.session->is_established();
  auto answer = found.session->on_hello(now, *hello);
  if (!answer) return answer.error();
  queue_hello(*answer, found.peer);
  if (!had_keys && found.session->is_established())
    add_endpoint_session(now, found.peer, found.session->peer());
  return {};
}

// Called when the hello of a QP has told the peer's incarnation: now a session for endpoint packets
// between the two processes can be made. If there is no memory for it, those packets are not sent,
// and then no probe can find that a dead path works once more.
void SessionTable::add_endpoint_session(Time now, std::uint32_t peer, const EndId& said) {
  if (said.qpn == wire::kEndpointQpn || said.incarnation == incarnation_) return;
  const EndId id{
      .incarnation = said.incarnation, .process = said.process, .qpn = wire::kEndpointQpn};
  std::unique_ptr<SecureSession>& endpoints = peers_[peer].endpoints;
  if (endpoints != nullptr && endpoints->peer() == id) return;
  auto session = make_session(wire::kEndpointQpn, id);
  if (!session) return;
  last_outgoing_ = {};
  endpoints = std::move(session).value();
  queue_hello(endpoints->poll_hello(now), peer);
}

Result<ReceiveDirection::Opened, DropReason> SessionTable::open(Time now, const Arrival& arrival,
                                                                Bytes packet) {
  if (is_hello(packet)) {
    const auto taken = on_hello(now, packet);
    if (!taken) return taken.error();
    return ReceiveDirection::Opened{};
  }
  if (packet.size() < wire::bth_at::kSize) return DropReason::kTooShort;
  const Found found = find_incoming(arrival.from, dest_qpn(packet));
  if (found.session == nullptr) return DropReason::kNoSession;
  if (!found.session->is_established()) {
    // The peer has keys and we do not: the last hello was lost.
    queue_hello(found.session->poll_hello(now), found.peer);
    return DropReason::kNoSession;
  }
  return found.session->in().open(packet, arrival.options);
}

}  // namespace weft::seal
