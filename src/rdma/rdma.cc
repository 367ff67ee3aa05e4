#include "rdma/rdma.h"

namespace weft::rdma {

std::string_view to_string(Status status) {
  switch (status) {
    case Status::kOk:
      return "completed";
    case Status::kRetryExceeded:
      return "the peer does not answer";
    case Status::kRemoteAccess:
      return "the peer refused the key or the range";
    case Status::kRemoteInvalid:
      return "the peer found the request invalid";
    case Status::kRemoteOperation:
      return "the peer had no receive posted";
    case Status::kLocalAccess:
      return "a write of the peer violated our memory or our credits";
    case Status::kFlushed:
      return "flushed, because the QP had failed";
  }
  return "?";
}

}  // namespace weft::rdma
