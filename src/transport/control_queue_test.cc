#include "transport/control_queue.h"

#include <gtest/gtest.h>

namespace weft::transport {
namespace {

TEST(ControlQueue, PacketsLeaveInTheOrderTheyCame) {
  ControlQueue queue(4);
  EXPECT_TRUE(queue.empty());
  for (std::uint32_t i = 0; i < 4; ++i) queue.add()->qpn = i;
  EXPECT_EQ(queue.size(), 4u);
  for (std::uint32_t i = 0; i < 4; ++i, queue.pop()) EXPECT_EQ(queue.front().qpn, i);
  EXPECT_TRUE(queue.empty());
}

TEST(ControlQueue, FullQueueDropsTheNewestPacketAndCountsIt) {
  ControlQueue queue(4);
  for (std::uint32_t i = 0; i < 4; ++i) queue.add()->qpn = i;
  EXPECT_EQ(queue.add(), nullptr);
  EXPECT_EQ(queue.add(), nullptr);
  EXPECT_EQ(queue.dropped(), 2u);
  EXPECT_EQ(queue.front().qpn, 0u);
  queue.pop();
  EXPECT_NE(queue.add(), nullptr);
}

TEST(ControlQueue, ReusedPlaceHoldsNothingOfItsLastPacket) {
  ControlQueue queue(1);
  ControlPacket* packet = queue.add();
  packet->port = PortChoice::only(3);
  packet->fixed_ev = packet->data_class = true;
  packet->entropy = packet->peer = packet->qpn = 5;
  queue.pop();
  packet = queue.add();
  EXPECT_EQ(packet->port, PortChoice::in_turn());
  EXPECT_FALSE(packet->fixed_ev);
  EXPECT_FALSE(packet->data_class);
  EXPECT_EQ(packet->entropy, 0u);
  EXPECT_EQ(packet->peer, ControlPacket::kNoPeer);
  EXPECT_EQ(packet->qpn, 0u);
}

TEST(ControlQueue, WrittenHeaderParsesToTheSamePacket) {
  ControlQueue queue(1);
  ControlPacket* packet = queue.add();
  const wire::Bth bth{.opcode = wire::Opcode::kProbe, .dest_qpn = 0x123};
  write_header(*packet, bth, wire::Probe{.probe_id = 7});
  const auto parsed = wire::parse(ConstBytes(packet->header).first(packet->header_size));
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->bth, bth);
  EXPECT_EQ(std::get<wire::Probe>(parsed->body).probe_id, 7);
}

}  // namespace
}  // namespace weft::transport
