// Forward declaration of CLI11's App. The header of CLI11 takes seconds to compile, and most files
// only pass an App on to other functions.
#pragma once

namespace CLI {
class App;
}  // namespace CLI
