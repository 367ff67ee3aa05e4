// Shared by the tests of the dissector: tshark, and frames drawn from a seed.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/prng.h"
#include "net/steering.h"
#include "packet_row.h"
#include "tshark.h"
#include "wire/frame.h"
#include "wire/test_packets.h"

namespace weft::mrc_test {

using wire::Opcode;
using wire::test::Buffer;

inline const std::vector<std::string> kVerify = {"mrc.verify_icrc:TRUE"};

class Dissector : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Tshark::is_installed())
      GTEST_SKIP() << "tshark is not installed (tools/install-deps test)";
  }

  // Runs tshark on the frames added so far, and compares every row completely with `expected`.
  void expect_rows(const std::vector<Row>& expected, const std::vector<std::string>& options) {
    const std::vector<Row> rows = tshark_.read(all_fields(), options);
    ASSERT_EQ(rows.size(), expected.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (const auto& [field, value] : rows[i]) {
        const auto at = expected[i].find(field);
        ASSERT_EQ(value, at == expected[i].end() ? "" : at->second)
            << field << " of frame " << i + 1 << ": " << rows[i].at("_ws.col.Info");
      }
    }
  }

  Tshark tshark_;
};

inline Ipv6 draw_address(Prng& prng) { return {.high = 0xfd00'0002ull << 32, .low = prng.next()}; }

inline std::uint16_t draw_port(Prng& prng) {
  switch (prng.below(3)) {
    case 0:
      return wire::kUdpPort;
    case 1:
      return wire::kUdpPortAlternate;
    default:
      return wire::listen_port(static_cast<std::uint16_t>(1 + prng.below(wire::kProcessesMax - 1)));
  }
}

inline wire::Envelope draw_envelope(Prng& prng) {
  wire::Envelope envelope = {.source = draw_address(prng),
                             .destination = draw_address(prng),
                             .dscp = 4,
                             .ecn = 2,
                             .udp_port = draw_port(prng),
                             .entropy = static_cast<std::uint32_t>(prng.next())};
  if (prng.below(2) == 0) {
    envelope.usid_destination = Ipv6{.high = 0xfd00'0001'1805'582aull, .low = 0x1809'9811ull << 32};
  }
  return envelope;
}

inline Buffer draw_payload(Prng& prng, Opcode opcode) {
  Buffer payload(wire::is_write(opcode) ? prng.below(70) : 0);
  for (std::byte& b : payload) b = static_cast<std::byte>(prng.next());
  return payload;
}

inline Buffer framed(const wire::Envelope& envelope, const Buffer& header, const Buffer& payload) {
  Buffer out(wire::frame_size_max(payload.size()));
  out.resize(wire::emit_frame(envelope, {.header = header, .payload = payload}, out));
  return out;
}

}  // namespace weft::mrc_test
