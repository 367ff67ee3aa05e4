// SealedPackets: builds runs of sealed packets, opens received ones in place, and says which hellos
// are to be sent. The copy into a run is the encryption.
//
// Allocates when it is made and in secure().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "fabric/ev.h"
#include "net/packet_run.h"
#include "seal/session_table.h"
#include "wire/drop_reason.h"

namespace weft::net {

class SealedPackets {
 public:
  struct Options {
    ConstBytes job_secret{};  // needed only until the packets are made
    std::uint16_t process = 0;
    std::uint32_t qps_max = 1024;
    std::vector<fabric::Ev> evs{};  // of this process, for hellos in turn
  };
  // Errors: kInvalid for a secret that is too short, kSystem.
  static Result<std::unique_ptr<SealedPackets>> make(const Options& options);

  seal::SessionTable& sessions() { return *sessions_; }
  const seal::SessionTable& sessions() const { return *sessions_; }

  // As PlainPackets::join(), for packets with that EV as the receiver computes it. The run ends
  // before a packet for which there are no keys yet, and a hello is due.
  OutgoingRun join(Time now, std::span<const world::Datagram> out, std::uint32_t ev);
  // Opens the packet, or handles a hello. A hello may be due after it.
  Result<IncomingPacket, DropReason> open(Time now, Bytes packet,
                                          const seal::SessionTable::Arrival& arrival);

  // A hello that is due. Each takes another path, so that a dead path delays keys but does not
  // prevent them.
  struct Hello {
    fabric::Ev ev{};
    world::Address to{};
    seal::SecureHello::Packet packet{};
  };
  std::optional<Hello> poll_hello();

 private:
  explicit SealedPackets(std::unique_ptr<seal::SessionTable> sessions, const Options& options);

  std::unique_ptr<seal::SessionTable> sessions_;
  std::vector<std::byte> run_;  // as it goes on the wire
  iovec piece_{};
  std::vector<fabric::Ev> evs_;
  std::size_t turn_ = 0;
};

}  // namespace weft::net
