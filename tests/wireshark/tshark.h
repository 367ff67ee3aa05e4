// Tshark: frames through the real tshark with tools/wireshark/mrc.lua, and back as rows of fields.
//
// A value is a comma-separated list of what the frame has of that field; numbers come as decimal
// text, however tshark writes them.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "row.h"
#include "scratch_folder.h"
#include "wire/pcap.h"

namespace weft::mrc_test {

class Tshark {
 public:
  static bool is_installed();

  void add(ConstBytes frame);

  // One row a frame, in order, with all `fields`. `options`: what follows -o, such as
  // "mrc.secured:TRUE". Throws what tshark said when it fails.
  std::vector<Row> read(const std::vector<std::string>& fields,
                        const std::vector<std::string>& options = {});

 private:
  ScratchFolder folder_;
  wire::Pcap pcap_{{}};
  std::string capture_;
  std::int64_t frame_count_ = 0;
};

}  // namespace weft::mrc_test
