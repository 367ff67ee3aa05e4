#include "tshark.h"

#include <cstdint>
#include <cstdlib>
#include <sstream>

namespace weft::mrc_test {
namespace {

// 0x0123 is 291, True is 1: versions of tshark differ.
std::string plain(const std::string& value) {
  if (value == "True") return "1";
  if (value == "False") return "0";
  if (value.rfind("0x", 0) != 0) return value;
  char* end = nullptr;
  const std::uint64_t number = std::strtoull(value.c_str(), &end, 16);
  return *end == '\0' ? std::to_string(number) : value;
}

std::string plain_list(const std::string& values) {
  std::string out;
  for (const std::string& value : split(values, ',')) {
    if (!out.empty()) out += ',';
    out += plain(value);
  }
  return out;
}

}  // namespace

bool Tshark::is_installed() { return std::system("command -v tshark > /dev/null 2>&1") == 0; }

void Tshark::add(ConstBytes frame) {
  while (!pcap_.append(Time{} + Duration::ns(++frame_count_), frame)) {
    capture_ += pcap_.pending();
    pcap_.clear();
  }
}

std::vector<Row> Tshark::read(const std::vector<std::string>& fields,
                              const std::vector<std::string>& options) {
  std::string capture = capture_;
  capture += pcap_.pending();
  // Tests run in the root of the repository.
  std::string command = "tshark -n -X lua_script:tools/wireshark/mrc.lua -r ";
  command += folder_.write("frames.pcap", capture);
  command += " -o udp.try_heuristic_first:TRUE -T fields -E separator=/t -E occurrence=a";
  for (const std::string& option : options) command += " -o " + option;
  for (const std::string& field : fields) command += " -e " + field;

  std::vector<Row> rows;
  std::stringstream lines(folder_.run(command));
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> values = split(line, '\t');
    Row& row = rows.emplace_back();
    for (std::size_t i = 0; i < fields.size() && i < values.size(); ++i) {
      const bool is_text = fields[i].rfind("_ws.", 0) == 0;
      row[fields[i]] = is_text ? values[i] : plain_list(values[i]);
    }
  }
  return rows;
}

}  // namespace weft::mrc_test
