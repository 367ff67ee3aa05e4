// RequestIds: the ids of an endpoint's requests, shared by EV probes, port status updates and a
// controller's requests. They wrap around and are never 0, which stands for "no request".
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
