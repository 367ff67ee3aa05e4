// For tests: two ends of a session, and packets between them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "seal/secure_layout.h"
#include "seal/secure_session.h"
#include "wire/packet.h"

namespace weft::seal::test {

inline constexpr Time kStart = Time::from_start(Duration::ms(10));

inline std::vector<std::byte> some_secret(std::uint8_t which = 1) {
  return std::vector<std::byte>(KeySchedule::kSecretSizeMin, std::byte{which});
}

struct TestEnd {
  KeySchedule keys;
  SecureSession session;
  TestEnd(const SecureSession::Config& config, std::uint8_t secret = 1)
      : keys(KeySchedule::from_secret(some_secret(secret)).value()), session(keys, config) {}
  TestEnd(const TestEnd&) = delete;
  // Parses and handles a hello; returns the answer, if one is due.
  std::optional<SecureHello::Packet> hear(const SecureHello::Packet& packet, Time now = kStart) {
    const auto hello = parse_hello(packet, keys);
    if (!hello) return std::nullopt;
    const auto answer = session.on_hello(now, *hello);
    if (!answer || !*answer) return std::nullopt;
    return (*answer)->emit(keys);
  }
  std::optional<SecureHello::Packet> speak(Time now = kStart) {
    const auto hello = session.poll_hello(now);
    if (!hello) return std::nullopt;
    return hello->emit(keys);
  }
};

inline EndId id_of(std::uint64_t incarnation, std::uint32_t qpn = 0x123,
                   std::uint16_t process = 0) {
  return {.incarnation = incarnation, .process = process, .qpn = qpn};
}
inline SessionRandom drawn(std::uint8_t value) {
  SessionRandom out;
  out.fill(std::byte{value});
  return out;
}
inline SecureSession::Config config_of(const EndId& self, const EndId& peer, std::uint8_t random,
                                       std::uint32_t epoch_shift = kEpochShift) {
  return {.self = self, .peer = peer, .drawn = drawn(random), .epoch_shift = epoch_shift};
}

// Passes hellos between the ends until there is no answer.
inline void shake_hands(TestEnd& a, TestEnd& b, Time now = kStart) {
  auto packet = a.speak(now);
  TestEnd* to = &b;
  for (int i = 0; packet && i < 10; ++i) {
    packet = to->hear(*packet, now);
    to = to == &a ? &b : &a;
  }
}

inline std::vector<std::byte> write_header(std::size_t payload_size, std::uint32_t psn = 1) {
  std::vector<std::byte> header(wire::kHeaderSizeMax);
  header.resize(wire::emit({.opcode = wire::Opcode::kWriteOnly,
                            .pad = wire::pad_for(payload_size),
                            .dest_qpn = 0x123,
                            .psn = Psn(psn)},
                           wire::Write{.sent = {7}, .va = 0x1000, .rkey = 5}, header));
  return header;
}
inline std::vector<std::byte> nack_header() {
  std::vector<std::byte> header(wire::kHeaderSizeMax);
  header.resize(wire::emit({.opcode = wire::Opcode::kNack, .dest_qpn = 0x123, .psn = Psn(4)},
                           wire::Nack{.reason = wire::NackReason::kUnexpectedEvent}, header));
  return header;
}
inline std::vector<std::byte> some_payload(std::size_t size) {
  std::vector<std::byte> out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<std::byte>(i * 7 + 1);
  return out;
}

inline constexpr std::uint32_t kEv = 15'104;

inline std::vector<std::byte> sealed(SendDirection& out, ConstBytes header, ConstBytes payload = {},
                                     std::uint32_t ev = kEv) {
  std::vector<std::byte> packet(9000);
  packet.resize(out.seal({.header = header, .payload = payload, .ev = ev}, packet));
  return packet;
}
inline Result<ReceiveDirection::Opened, DropReason> opened(ReceiveDirection& in,
                                                           std::vector<std::byte>& packet,
                                                           ReceiveDirection::Options options = {
                                                               .ev = kEv}) {
  return in.open(packet, options);
}

}  // namespace weft::seal::test
