// Tshark: frames through the real tshark with tools/wireshark/mrc.lua, and back as rows of fields.
//
// The capture is a file in a folder of its own, gone with the object. A value is a comma-separated
// list of what the frame has of that field; numbers come as decimal text, however tshark writes
// them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "wire/pcap.h"

namespace weft::mrc_test {

using Row = std::map<std::string, std::string>;  // a field that the frame does not have: ""

class Tshark {
 public:
  Tshark();
  ~Tshark();
  Tshark(const Tshark&) = delete;
  Tshark& operator=(const Tshark&) = delete;

  static bool is_installed();

  void add(ConstBytes frame);
  std::size_t frame_count() const { return frame_count_; }

  // One row a frame, in order. `options`: what follows -o, such as "mrc.secured:TRUE". Throws what
  // tshark said when it fails.
  std::vector<Row> read(const std::vector<std::string>& fields,
                        const std::vector<std::string>& options = {});

 private:
  std::string folder_;
  std::string capture_;
  wire::Pcap pcap_{{}};
  std::size_t frame_count_ = 0;
};

}  // namespace weft::mrc_test
