#include "seal/secure_session.h"

#include "base/assert.h"

namespace weft::seal {
namespace {

constexpr Duration kHelloEvery = Duration::ms(1);
// The most answers per millisecond. Replayed hellos of old sessions are answered too, because only
// the peer's answer shows that they are old. The limit leaves room for real hellos.
constexpr std::uint32_t kAnswersMax = 16;

}  // namespace

SecureSession::SecureSession(const KeySchedule& keys, const Config& config)
    : keys_(&keys), config_(config) {
  WEFT_ASSERT(config.self != config.peer);
}

SecureHello SecureSession::hello_to(const EndId& peer, const SessionRandom& echo) const {
  return {.from = config_.self,
          .to = peer,
          .drawn = config_.drawn,
          .echo = echo,
          .established = is_established()};
}

std::optional<SecureHello> SecureSession::poll_hello(Time now) {
  if (is_established() || now < hello_next_) return std::nullopt;
  hello_next_ = now + kHelloEvery;
  return hello_to(config_.peer, {});
}

// Whether the hello is addressed to this end. A peer that does not know our incarnation writes 0;
// then QP and process must match.
bool SecureSession::is_for_us(const SecureHello& hello) const {
  const auto is_same = [](EndId named, const EndId& known, std::uint64_t unknown) {
    if (unknown == 0) named.incarnation = known.incarnation;
    return named == known;
  };
  return is_same(hello.to, config_.self, hello.to.incarnation) &&
         is_same(hello.from, config_.peer, config_.peer.incarnation);
}

Result<std::optional<SecureHello>, DropReason> SecureSession::on_hello(Time now,
                                                                       const SecureHello& hello) {
  if (!is_for_us(hello)) return DropReason::kNoSession;
  if (is_established() && hello.drawn != peer_drawn_) return DropReason::kStale;
  const bool fresh = hello.echo == config_.drawn;
  if (fresh && !is_established()) {
    peer_drawn_ = hello.drawn;
    config_.peer = hello.from;
    const SessionEnd here{.id = config_.self, .random = config_.drawn};
    const SessionEnd there{.id = config_.peer, .random = hello.drawn};
    out_.emplace(keys_->traffic_secret(here, there), config_.epoch_shift);
    in_.emplace(keys_->traffic_secret(there, here), config_.epoch_shift);
  }
  if (fresh && hello.established) return std::optional<SecureHello>();
  if (now - answers_since_ >= kHelloEvery) {
    answers_since_ = now;
    answers_ = 0;
  }
  if (answers_ == kAnswersMax) return DropReason::kNoBuffer;
  ++answers_;
  return std::optional<SecureHello>(hello_to(hello.from, hello.drawn));
}

}  // namespace weft::seal
