// Runs a fuzz target without libFuzzer: on every file of the corpus folder, then on mutations of
// each file, drawn from a fixed seed. The inputs and their order are the same on every machine, so
// that a failure can be repeated.
//
//   fuzz_NAME CORPUS_FOLDER             replay all (an absent folder is an empty corpus)
//   fuzz_NAME FILE                      replay one, without mutations: a finding
//
// Targets use assertions. If an input breaks one, a signal handler prints which input it was before
// the program ends.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;
using Input = std::vector<std::uint8_t>;

constexpr int kMutationsPerInput = 200;
constexpr std::size_t kInputSizeMax = 1 << 16;

// The current input, for the message of an abort: its file and how many mutations were made.
const char* running_name = "";
int running_mutation = 0;

// Called when WEFT_ASSERT aborts: prints the input, then aborts.
void name_the_input(int signal) {
  std::fprintf(stderr, "the input was %s, mutation %d (0: as it is)\n", running_name,
               running_mutation);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

struct Random {
  std::uint64_t state;
  std::uint64_t next() {
    state += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(next() % bound); }
  std::uint8_t byte() { return static_cast<std::uint8_t>(next()); }
};

Input read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return Input(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

void run(const Input& input, const std::string& name, int mutation = 0) {
  running_name = name.c_str();
  running_mutation = mutation;
  // An allocation of exactly this size, so that AddressSanitizer detects a read past the end.
  const Input exact(input.begin(), input.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

// Makes one small change: flips a bit, sets a byte or a boundary value, cuts, inserts, repeats, or
// splices with another input.
void mutate(Input& input, Random& random, const std::vector<Input>& corpus) {
  const auto at = [&] {
    return input.begin() + static_cast<std::ptrdiff_t>(random.below(input.size() + 1));
  };
  if (input.empty()) {
    input.push_back(random.byte());
    return;
  }
  switch (random.below(8)) {
    case 0:
      input[random.below(input.size())] ^= static_cast<std::uint8_t>(1u << random.below(8));
      break;
    case 1:
      input[random.below(input.size())] = random.byte();
      break;
    case 2: {
      constexpr std::uint8_t kEdges[] = {0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff};
      input[random.below(input.size())] = kEdges[random.below(std::size(kEdges))];
      break;
    }
    case 3:
      input.resize(random.below(input.size()));
      break;
    case 4:
      input.insert(at(), random.byte());
      break;
    case 5:
      input.erase(input.begin() + static_cast<std::ptrdiff_t>(random.below(input.size())));
      break;
    case 6: {
      Input copy(input.begin(), at());
      if (copy.size() > 64) copy.resize(64);
      input.insert(at(), copy.begin(), copy.end());
      break;
    }
    default: {
      const Input& other = corpus[random.below(corpus.size())];
      input.resize(random.below(input.size() + 1));
      if (!other.empty()) {
        const auto from = other.begin() + static_cast<std::ptrdiff_t>(random.below(other.size()));
        input.insert(input.end(), from, other.end());
      }
      break;
    }
  }
  if (input.size() > kInputSizeMax) input.resize(kInputSizeMax);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s CORPUS_FOLDER | FILE\n", argv[0]);
    return 2;
  }
  std::signal(SIGABRT, name_the_input);
  const fs::path where = argv[1];
  if (fs::is_regular_file(where)) {
    const std::string name = where.string();
    run(read_file(where), name);
    return 0;
  }

  std::vector<fs::path> paths;
  if (fs::is_directory(where)) {
    for (const auto& entry : fs::directory_iterator(where)) {
      if (entry.is_regular_file()) paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());

  std::vector<Input> corpus;
  std::vector<std::string> names;
  for (const auto& path : paths) {
    corpus.push_back(read_file(path));
    names.push_back(path.filename().string());
  }
  // Every corpus also has the empty input, whose mutations begin with nothing.
  corpus.emplace_back();
  names.emplace_back("(empty)");

  std::size_t runs = 0;
  for (std::size_t i = 0; i < corpus.size(); ++i, ++runs) run(corpus[i], names[i]);
  for (std::size_t i = 0; i < corpus.size(); ++i) {
    Random random{.state = i + 1};
    Input input = corpus[i];
    for (int mutation = 1; mutation <= kMutationsPerInput; ++mutation, ++runs) {
      if (mutation % 8 == 1)
        input = corpus[i];  // after eight mutations, begin with the original again
      mutate(input, random, corpus);
      run(input, names[i], mutation);
    }
  }
  std::printf("%zu inputs of %zu files\n", runs, paths.size());
}
