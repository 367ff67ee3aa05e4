// Forward declaration of CLI11's App. Its header takes seconds to compile, and most files only pass
// an App on.
#pragma once

namespace CLI {
class App;
}  // namespace CLI
