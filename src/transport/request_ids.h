// RequestIds: the numbers of an endpoint's requests, shared by EV probes, port status updates and
// what a controller asks. They go round and are never 0: 0 stands for "no request".
#pragma once

#include <cstdint>

namespace weft::transport {

class RequestIds {
 public:
  std::uint16_t next() {
    if (++last_ == 0) ++last_;
    return last_;
  }

 private:
  std::uint16_t last_ = 0;
};

}  // namespace weft::transport
