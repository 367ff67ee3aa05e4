#include "net/shm_ring.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <deque>
#include <thread>
#include <vector>

#include "base/prng.h"

namespace weft::net {
namespace {

constexpr std::size_t kCapacity = ShmMemory::kCapacityMin;

// Byte n of the test pattern of `seed`.
std::byte pattern(std::uint64_t seed, std::size_t n) {
  return static_cast<std::byte>(seed * 31 + n * 7 + (n >> 8));
}

void fill(std::span<std::byte> bytes, std::uint64_t seed) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = pattern(seed, i);
}

bool holds(ConstBytes bytes, std::uint64_t seed) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != pattern(seed, i)) return false;
  }
  return true;
}

struct Sizes {
  std::size_t header = 0, payload = 0;
};

// Sizes of a random record: mostly short, sometimes the longest possible.
Sizes draw(Prng& prng) {
  const std::uint32_t kind = prng.below(4);
  const std::uint32_t most = kind == 0 ? 16 : kind == 1 ? 300 : kind == 2 ? 5000 : kShmPayloadMax;
  return {.header = prng.below(kShmHeaderMax + 1), .payload = prng.below(most + 1)};
}

struct Ends {
  ShmMemory memory = ShmMemory::create(kCapacity).value();
  ShmWriter writer{memory};
  ShmReader reader{memory};
  std::array<std::byte, kShmHeaderMax> header{};
  ShmReader::Record got{};
};

TEST(ShmRing, RecordsOfAnySizeComeOutInOrder) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Prng prng(seed);
    Ends ends;
    std::deque<Sizes> inside;
    std::vector<std::byte> header(kShmHeaderMax), payload(kShmPayloadMax);
    std::uint64_t pushed = 0, taken = 0;
    for (int step = 0; step < 2000; ++step) {
      if (prng.below(2) == 0) {
        if (ends.writer.room() == 0) continue;
        const Sizes s = draw(prng);
        fill(std::span(header).first(s.header), pushed);
        fill(std::span(payload).first(s.payload), pushed + 1);
        ends.writer.push({.header = ConstBytes(header).first(s.header),
                          .payload = ConstBytes(payload).first(s.payload),
                          .note = static_cast<std::uint16_t>(pushed++)});
        inside.push_back(s);
      } else if (ends.reader.next(ends.header, ends.got)) {
        ASSERT_FALSE(inside.empty());
        ASSERT_EQ(ends.got.header_size, inside.front().header);
        ASSERT_EQ(ends.got.payload.size(), inside.front().payload);
        ASSERT_EQ(ends.got.note, static_cast<std::uint16_t>(taken));
        ASSERT_TRUE(holds(ConstBytes(ends.header).first(ends.got.header_size), taken));
        ASSERT_TRUE(holds(ends.got.payload, taken + 1));
        inside.pop_front();
        ++taken;
        if (prng.below(3) == 0) ends.reader.release();
      } else {
        ASSERT_TRUE(inside.empty());
        ends.reader.release();
      }
      ASSERT_FALSE(ends.reader.is_broken() || ends.writer.is_broken());
    }
    EXPECT_GT(taken, 300u);
  }
}

TEST(ShmRing, FullRingHasNoRoomUntilTheReaderReleases) {
  Ends ends;
  const std::vector<std::byte> payload(kShmPayloadMax, std::byte{7});
  std::uint32_t count = 0;
  for (; ends.writer.room() > 0 && count < 100; ++count) ends.writer.push({{}, payload});
  EXPECT_EQ(count, (kCapacity - 64) / kShmRecordMax);
  EXPECT_TRUE(ends.writer.sleep());
  ASSERT_TRUE(ends.reader.next(ends.header, ends.got));
  EXPECT_EQ(ends.writer.room(), 0u);    // taken, but not released
  EXPECT_TRUE(ends.reader.release());   // the writer sleeps and must be woken
  EXPECT_FALSE(ends.reader.release());  // nothing to release, nobody to wake
  EXPECT_EQ(ends.writer.room(), 1u);
  EXPECT_FALSE(ends.writer.sleep());
}

TEST(ShmRing, WriterWakesOnlyASleepingReader) {
  Ends ends;
  ends.writer.push({});
  EXPECT_FALSE(ends.writer.take_reader_asleep());
  EXPECT_FALSE(ends.reader.sleep());  // a record is there
  EXPECT_FALSE(ends.writer.take_reader_asleep());
  ASSERT_TRUE(ends.reader.next(ends.header, ends.got));
  EXPECT_TRUE(ends.reader.sleep());
  ends.writer.push({});
  EXPECT_TRUE(ends.writer.take_reader_asleep());
  EXPECT_FALSE(ends.writer.take_reader_asleep());
}

TEST(ShmRing, RecordsCrossBetweenTwoThreads) {
  Ends ends;
  constexpr std::uint64_t kRecords = 3000;
  std::thread writer([&ends] {
    Prng prng(5);
    std::vector<std::byte> payload(kShmPayloadMax);
    for (std::uint64_t n = 0; n < kRecords;) {
      if (ends.writer.room() == 0) {
        std::this_thread::yield();
        continue;
      }
      const Sizes s = draw(prng);
      fill(std::span(payload).first(s.payload), n);
      ends.writer.push(
          {.header = ConstBytes(payload).first(std::min(s.header, s.payload)),
           .payload = ConstBytes(payload).first(s.payload),
           .note = static_cast<std::uint16_t>(n),
           .routine = n % 2 == 0 ? CopyRoutine::kThroughCaches : CopyRoutine::kPastCaches});
      ++n;
    }
  });
  Prng prng(5);
  bool right = true;
  for (std::uint64_t n = 0; n < kRecords;) {
    if (!ends.reader.next(ends.header, ends.got)) {
      ends.reader.release();
      std::this_thread::yield();
      continue;
    }
    const Sizes s = draw(prng);
    right = right && ends.got.payload.size() == s.payload &&
            ends.got.note == static_cast<std::uint16_t>(n) && holds(ends.got.payload, n) &&
            holds(ConstBytes(ends.header).first(ends.got.header_size), n);
    ++n;
    if (n % 3 == 0) ends.reader.release();
  }
  writer.join();
  EXPECT_TRUE(right);
}

// A peer overwrites random words of the ring while we read. No byte outside the ring may be read
// (checked by ASan and by the bounds of the returned spans), and the ring must end as broken, not
// as a crash.
TEST(ShmRing, HostileWriterBreaksOnlyTheRing) {
  std::uint32_t broken = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    Prng prng(seed);
    Ends ends;
    const std::byte* const from = ends.memory.data();
    std::uint64_t sum = 0;
    for (int step = 0; step < 500 && !ends.reader.is_broken(); ++step) {
      const std::uint64_t at = prng.below(2) == 0 ? ends.reader.taken() & (kCapacity - 1)
                                                  : prng.below(kCapacity / 64) * 64;
      std::uint64_t word = prng.next();
      // Most words are almost valid, so that later checks are reached too.
      if (prng.below(8) != 0) word = (word & 0x003f'ffff'0001'ffff) | 0xa5ull << 56;
      std::memcpy(ends.memory.data() + at, &word, sizeof(word));
      for (int i = 0; i < 4 && ends.reader.next(ends.header, ends.got); ++i) {
        ASSERT_LE(ends.got.header_size, kShmHeaderMax);
        ASSERT_GE(ends.got.payload.data(), from);
        ASSERT_LE(ends.got.payload.data() + ends.got.payload.size(), from + 2 * kCapacity);
        for (const std::byte b : ends.got.payload) sum += static_cast<std::uint64_t>(b);
      }
      if (prng.below(4) == 0) ends.reader.release();
    }
    broken += ends.reader.is_broken() ? 1 : 0;
    EXPECT_GE(sum, 0u);
  }
  EXPECT_GT(broken, 25u);
}

TEST(ShmRing, HostileReaderBreaksOnlyTheRing) {
  for (const std::uint64_t tail : std::array<std::uint64_t, 3>{~0ull, 1ull << 40, 3 * kCapacity}) {
    Ends ends;
    const std::vector<std::byte> payload(kShmPayloadMax);
    std::memcpy(ends.memory.control(), &tail, sizeof(tail));
    for (int i = 0; i < 100 && ends.writer.room() > 0; ++i) ends.writer.push({{}, payload});
    EXPECT_TRUE(ends.writer.is_broken());
    EXPECT_EQ(ends.writer.room(), 0u);
  }
}

TEST(ShmMemory, OnlySealedMemoryOfTheRightSizeIsAccepted) {
  const auto refused = [](int fd) { return !ShmMemory::adopt(fd).has_value(); };
  EXPECT_TRUE(refused(open("/dev/null", O_RDWR | O_CLOEXEC)));
  EXPECT_TRUE(refused(memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING)));
  const int odd = memfd_create("odd", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(odd, 4096 + 3000), 0);
  ASSERT_EQ(fcntl(odd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  EXPECT_TRUE(refused(odd));
  EXPECT_TRUE(refused(-1));
}

TEST(ShmMemory, BothEndsSeeTheSameBytesAndTheMemoryWraps) {
  ShmMemory ours = ShmMemory::create(kCapacity).value();
  ShmMemory theirs = ShmMemory::adopt(dup(ours.fd())).value();
  ours.close_fd();
  ASSERT_EQ(theirs.capacity(), kCapacity);
  ours.data()[kCapacity + 5] = std::byte{42};
  EXPECT_EQ(theirs.data()[5], std::byte{42});
  // The memory is sealed, so that a peer cannot shrink it while it is in use.
  EXPECT_NE(ftruncate(theirs.fd(), 0), 0);
}

}  // namespace
}  // namespace weft::net
