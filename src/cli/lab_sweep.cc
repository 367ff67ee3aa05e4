#include "cli/lab_sweep.h"

#include "lab/lab.h"
#include "os/say.h"

namespace weft::cli {

std::vector<std::string> sweep_labs() {
  std::vector<std::string> names;
  const auto swept = lab::Lab::sweep();
  // the folder of labs cannot be read; the calling command reports that itself
  if (!swept) return names;
  for (const auto& [name, done] : *swept) {
    if (done) {
      os::say("weft: lab: {} was left by a run that died; it is taken down\n", name);
      names.push_back(name);
    } else {
      os::say("weft: {}; {} was left by a run that died, `weft lab down --name {}` tries again\n",
              done.error().message, name, name);
    }
  }
  return names;
}

}  // namespace weft::cli
