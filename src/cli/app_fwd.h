// CLI11's App by name: its header takes seconds to read, and most files only pass an App on.
#pragma once

namespace CLI {
class App;
}  // namespace CLI
