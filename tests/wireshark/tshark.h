// Tshark: runs the real tshark with tools/wireshark/mrc.lua on frames and returns rows of fields.
//
// A value is the comma-separated list of all values of that field in the frame. Numbers are decimal
// text, whatever form tshark prints.
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

  // One row per frame, in order, with all `fields`. `options` are arguments of -o, such as
  // "mrc.secured:TRUE". Throws tshark's error message if it fails.
  std::vector<Row> read(const std::vector<std::string>& fields,
                        const std::vector<std::string>& options = {});

 private:
  ScratchFolder folder_;
  wire::Pcap pcap_{{}};
  std::string capture_;
  std::int64_t frame_count_ = 0;
};

}  // namespace weft::mrc_test
