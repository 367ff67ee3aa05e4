// Two ends exchange genuine hellos and also receive any bytes as hellos, in any order. Only genuine
// hellos may be parsed, and they must survive emitting. If both ends have keys, the keys must be
// the same. The input is a script: one byte selects an action, and the action's arguments follow.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/assert.h"
#include "seal/secure_hello.h"
#include "seal/secure_session.h"

namespace weft::net {
namespace {

class Script {
 public:
  Script(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  bool is_over() const { return at_ >= size_; }
  std::uint8_t byte() { return is_over() ? std::uint8_t{0} : data_[at_++]; }

 private:
  const std::uint8_t* data_;
  std::size_t size_, at_ = 0;
};

class Ends {
 public:
  explicit Ends(const seal::KeySchedule& keys)
      : keys_(keys),
        ends_{seal::SecureSession(keys, {.self = {.incarnation = 1, .qpn = 5},
                                         .peer = {.incarnation = 2, .qpn = 6},
                                         .drawn = {std::byte{1}}}),
              seal::SecureSession(keys, {.self = {.incarnation = 2, .qpn = 6},
                                         .peer = {.incarnation = 1, .qpn = 5},
                                         .drawn = {std::byte{2}}})} {}

  void run_action(Script& script) {
    const std::uint8_t what = script.byte();
    seal::SecureSession& end = ends_[what & 1];
    now_ = now_ + Duration::us(300);
    switch (what >> 1 & 3) {
      case 0:
        if (const auto hello = end.poll_hello(now_)) keep(*hello);
        break;
      case 1:  // a genuine hello, again or late
        if (!sent_.empty()) deliver(end, sent_[script.byte() % sent_.size()]);
        break;
      case 2: {  // a genuine hello with changed bytes
        if (sent_.empty()) break;
        seal::SecureHello::Packet packet = sent_[script.byte() % sent_.size()];
        const seal::SecureHello::Packet genuine = packet;
        for (int edits = what >> 3 & 3; edits >= 0; --edits)
          packet[script.byte() % packet.size()] ^= static_cast<std::byte>(script.byte());
        WEFT_ASSERT(packet == genuine || !seal::parse_hello(packet, keys_));
        deliver(end, packet);
        break;
      }
      default: {  // arbitrary bytes
        std::vector<std::byte> bytes;
        for (int i = script.byte(); i > 0; --i) bytes.push_back(std::byte{script.byte()});
        WEFT_ASSERT(!seal::parse_hello(bytes, keys_));
      }
    }
    if (ends_[0].is_established() && ends_[1].is_established()) {
      WEFT_ASSERT(ends_[0].out().key_id() == ends_[1].in().key_id());
      WEFT_ASSERT(ends_[1].out().key_id() == ends_[0].in().key_id());
    }
  }

 private:
  void keep(const seal::SecureHello& hello) {
    const seal::SecureHello::Packet packet = hello.emit(keys_);
    WEFT_ASSERT(seal::parse_hello(packet, keys_).value() == hello);
    if (sent_.size() < 64) sent_.push_back(packet);
  }
  void deliver(seal::SecureSession& end, const seal::SecureHello::Packet& packet) {
    const auto hello = seal::parse_hello(packet, keys_);
    if (!hello) return;
    const auto answer = end.on_hello(now_, *hello);
    if (answer && *answer) keep(**answer);
  }

  const seal::KeySchedule& keys_;
  std::array<seal::SecureSession, 2> ends_;
  std::vector<seal::SecureHello::Packet> sent_;
  Time now_ = Time::from_start(Duration::ms(1));
};

}  // namespace
}  // namespace weft::net

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  using namespace weft::net;
  static const seal::KeySchedule keys =
      seal::KeySchedule::from_secret(std::vector<std::byte>(32)).value();
  Script script(data, std::min<std::size_t>(size, 400));
  Ends ends(keys);
  while (!script.is_over()) ends.run_action(script);
  return 0;
}
