// SealedPackets: builds runs of sealed packets, opens received packets in place, and says which
// hellos are to be sent. Encryption writes the packets directly into the run, so sealing needs no
// other copy.
//
// Allocates only in make() and secure().
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
    ConstBytes job_secret{};  // used by make() only
    std::uint16_t process = 0;
    std::uint32_t qps_max = 1024;
    std::vector<fabric::Ev> evs{};  // of this process; hellos take them in turn
  };
  // Errors: kInvalid for a secret that is too short, kSystem.
  static Result<std::unique_ptr<SealedPackets>> make(const Options& options);

  seal::SessionTable& sessions() { return *sessions_; }
  const seal::SessionTable& sessions() const { return *sessions_; }

  // As PlainPackets::join(), for packets of the EV `ev`, as the receiver computes it. A packet
  // without keys ends the run, and a hello becomes due.
  OutgoingRun join(Time now, std::span<const world::Datagram> out, std::uint32_t ev);
  // Opens the packet, or handles it if it is a hello. A hello may become due.
  Result<IncomingPacket, DropReason> open(Time now, Bytes packet,
                                          const seal::SessionTable::Arrival& arrival);

  // A hello to be sent. Successive hellos take different paths, so that a dead path delays the keys
  // but does not prevent them.
  struct Hello {
    fabric::Ev ev{};
    world::Address to{};
    seal::SecureHello::Packet packet{};
  };
  std::optional<Hello> poll_hello();

 private:
  explicit SealedPackets(std::unique_ptr<seal::SessionTable> sessions, const Options& options);

  std::unique_ptr<seal::SessionTable> sessions_;
  std::vector<std::byte> run_;  // the sealed packets of the current run
  iovec piece_{};
  std::vector<fabric::Ev> evs_;
  std::size_t turn_ = 0;
};

}  // namespace weft::net
