// The store under everything that happens to files: other processes, damage, limits, other users.
#include "compiler/store/Store.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fs = std::filesystem;
using namespace sheaf;

namespace {

/// A value that follows from its key, so that a wrong one is seen.
store::Bytes valueOf(const std::string &key, size_t bytes = 3000) {
  store::Bytes value(bytes);
  std::minstd_rand random(static_cast<unsigned>(std::hash<std::string>()(key)));
  for (uint8_t &byte : value)
    byte = static_cast<uint8_t>(random() >> 8);
  return value;
}

store::Values valuesOf(const std::vector<std::string> &keys, size_t bytes = 3000) {
  store::Values values;
  for (const std::string &key : keys)
    values[key] = valueOf(key, bytes);
  return values;
}

std::vector<std::string> numbered(const std::string &name, int count) {
  std::vector<std::string> keys;
  for (int i = 0; i < count; ++i)
    keys.push_back(name + std::to_string(i));
  return keys;
}

class StoreTest : public testing::Test {
protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "sheaf-store-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    parent_ = name;
    options_.directory = name + "/cache/sheaf";
  }
  void TearDown() override {
    fs::permissions(parent_, fs::perms::owner_all);
    fs::remove_all(parent_);
  }

  std::string file() const { return options_.directory + "/store-1.sqlite"; }
  fs::perms mode(const std::string &path) const { return fs::status(path).permissions(); }

  void fill(const std::vector<std::string> &keys) {
    store::Store store(options_);
    store.keep(valuesOf(keys));
    ASSERT_EQ(store.use().problem, "");
    ASSERT_EQ(store.use().kept, keys.size());
  }

  /// All in the one file: SQLite's log is written back.
  void settle() { execute("PRAGMA wal_checkpoint(TRUNCATE)"); }

  std::string log() const { return file() + "-wal"; }

  /// Turns bits of a byte around.
  static void change(const std::string &path, size_t at) {
    std::fstream stream(path, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(at));
    int byte = stream.get();
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put(static_cast<char>(byte ^ 0x5a));
    ASSERT_TRUE(stream.good());
  }

  /// Finds what is right, and warns so often. Then all is as if nothing had been.
  void expectDamagedLog(size_t warnings, size_t found, const std::vector<std::string> &keys) {
    fs::remove(file() + "-shm");
    store::Store store(options_);
    store::Values values = store.find(keys);
    expectRight(values);
    EXPECT_EQ(values.size(), found);
    EXPECT_EQ(store.use().problem, "");
    ASSERT_EQ(store.use().warnings.size(), warnings);
    if (warnings) {
      EXPECT_NE(store.use().warnings[0].find("log"), std::string::npos);
      EXPECT_EQ(fs::file_size(log()), 0U);
    }
    EXPECT_FALSE(fs::exists(file() + ".damaged"));
    store::Store next(options_);
    next.find(keys);
    EXPECT_TRUE(next.use().warnings.empty());
    next.keep(valuesOf(keys));
    EXPECT_EQ(store::Store(options_).find(keys), valuesOf(keys));
  }

  void execute(const std::string &sql) {
    sqlite3 *handle = nullptr;
    ASSERT_EQ(sqlite3_open(file().c_str(), &handle), SQLITE_OK);
    char *error = nullptr;
    sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, &error);
    EXPECT_EQ(error ? std::string(error) : "", "");
    sqlite3_free(error);
    sqlite3_close(handle);
  }

  /// Whatever was found must be right.
  static void expectRight(const store::Values &found) {
    for (const auto &[key, value] : found)
      EXPECT_EQ(value, valueOf(key)) << key;
  }

  /// Finds nothing, writes nothing, and says why.
  store::Use expectUnused() {
    store::Store store(options_);
    EXPECT_TRUE(store.find({"a"}).empty());
    store.keep(valuesOf({"a"}));
    EXPECT_NE(store.use().problem, "");
    EXPECT_EQ(store.use().kept, 0U);
    return store.use();
  }

  fs::path parent_;
  store::Options options_;
};

TEST_F(StoreTest, KeepsFromOneStartToTheNext) {
  {
    store::Store store(options_);
    EXPECT_TRUE(store.find({"a", "b"}).empty());
    store.keep(valuesOf({"a"}));
    EXPECT_EQ(store.use().found, 0U);
    EXPECT_EQ(store.use().made, 2U);
    EXPECT_EQ(store.use().kept, 1U);
  }
  store::Store store(options_);
  EXPECT_EQ(store.find({"a", "b"}), valuesOf({"a"}));
  EXPECT_EQ(store.use().found, 1U);
  EXPECT_EQ(store.use().problem, "");
  EXPECT_TRUE(store.use().warnings.empty());
}

TEST_F(StoreTest, EmptyAndLargeValues) {
  store::Values values{{"empty", {}}, {"large", valueOf("large", 5 << 20)}};
  store::Store(options_).keep(values);
  EXPECT_EQ(store::Store(options_).find({"empty", "large"}), values);
}

TEST_F(StoreTest, LastValueOfAKeyCounts) {
  store::Store(options_).keep({{"a", {1}}});
  store::Store(options_).keep({{"a", {2}}});
  EXPECT_EQ(store::Store(options_).find({"a"}), (store::Values{{"a", {2}}}));
}

TEST_F(StoreTest, WithoutADirectoryThereIsNone) {
  options_.directory.clear();
  store::Store store(options_);
  store.keep(valuesOf({"a"}));
  EXPECT_TRUE(store.find({"a"}).empty());
  EXPECT_EQ(store.use().problem, "");
}

TEST_F(StoreTest, NobodyElseCanReadIt) {
  fill({"a"});
  EXPECT_EQ(mode(options_.directory), fs::perms::owner_all);
  EXPECT_EQ(mode(parent_ / "cache"), fs::perms::owner_all);
  for (const fs::directory_entry &entry : fs::directory_iterator(options_.directory))
    EXPECT_EQ(mode(entry.path()), fs::perms::owner_read | fs::perms::owner_write) << entry.path();
}

TEST_F(StoreTest, WhatWasNotUsedForLongestGoesFirst) {
  options_.limit = 10 * 3300;
  fill(numbered("a", 4));
  fill(numbered("b", 4));
  // The first are used again, so the second have to go.
  EXPECT_EQ(store::Store(options_).find(numbered("a", 4)).size(), 4U);
  fill(numbered("c", 4));
  EXPECT_EQ(store::Store(options_).find(numbered("a", 4)).size(), 4U);
  EXPECT_EQ(store::Store(options_).find(numbered("b", 4)).size(), 2U);
  EXPECT_EQ(store::Store(options_).find(numbered("c", 4)).size(), 4U);
}

TEST_F(StoreTest, WhatIsPeekedAtDoesNotCountAsUsed) {
  options_.limit = 10 * 3300;
  fill(numbered("a", 4));
  fill(numbered("b", 4));
  store::Store store(options_);
  EXPECT_EQ(store.peek(numbered("a", 5)), valuesOf(numbered("a", 4)));
  EXPECT_EQ(store.use().found + store.use().made, 0U);
  fill(numbered("c", 4));
  EXPECT_EQ(store::Store(options_).find(numbered("a", 4)).size(), 2U);
  EXPECT_EQ(store::Store(options_).find(numbered("b", 4)).size(), 4U);
}

TEST_F(StoreTest, WhatIsPeekedAtIsWhole) {
  fill({"a", "b"});
  execute("UPDATE entries SET value = zeroblob(7) WHERE key = 'a'");
  store::Store store(options_);
  EXPECT_EQ(store.peek({"a", "b"}), valuesOf({"b"}));
  EXPECT_TRUE(store.use().warnings.empty());
  // Who looks for it drops it.
  EXPECT_EQ(store.find({"a", "b"}), valuesOf({"b"}));
  EXPECT_EQ(store.use().warnings.size(), 1U);
}

TEST_F(StoreTest, TheFileStaysWithinTheLimit) {
  options_.limit = 1 << 20;
  for (int i = 0; i < 200; ++i)
    store::Store(options_).keep(valuesOf(numbered("round" + std::to_string(i) + ".", 10)));
  uintmax_t bytes = 0;
  for (const fs::directory_entry &entry : fs::directory_iterator(options_.directory))
    bytes += entry.file_size();
  // The log of SQLite may stand beside it.
  EXPECT_LT(bytes, (1U << 20) * 3 / 2 + (3U << 20));
  settle();
  EXPECT_LT(fs::file_size(file()), (1U << 20) * 3 / 2);
  options_.limit = 64 << 10;
  store::Store(options_).keep(valuesOf({"last"}));
  settle();
  EXPECT_LT(fs::file_size(file()), 128U << 10);
  EXPECT_EQ(store::Store(options_).find({"last"}).size(), 1U);
}

TEST_F(StoreTest, WhatIsLargerThanTheLimitIsNotKept) {
  options_.limit = 10000;
  fill({"a"});
  store::Store store(options_);
  store.keep(valuesOf({"large"}, 20000));
  EXPECT_EQ(store.use().kept, 0U);
  EXPECT_EQ(store.find({"a"}).size(), 1U);
}

TEST_F(StoreTest, ADamagedFileIsSetAsideOnce) {
  fill({"a"});
  settle();
  std::fstream(file(), std::ios::in | std::ios::out | std::ios::binary) << "no database any more";
  store::Store store(options_);
  EXPECT_TRUE(store.find({"a"}).empty());
  ASSERT_EQ(store.use().warnings.size(), 1U);
  EXPECT_NE(store.use().warnings[0].find("damaged"), std::string::npos);
  EXPECT_EQ(store.use().problem, "");
  store.keep(valuesOf({"a"}));
  EXPECT_TRUE(fs::exists(file() + ".damaged"));
  store::Store next(options_);
  EXPECT_EQ(next.find({"a"}), valuesOf({"a"}));
  EXPECT_TRUE(next.use().warnings.empty());
}

TEST_F(StoreTest, AnyChangedByteIsHarmless) {
  std::vector<std::string> keys = numbered("k", 40);
  fill(keys);
  settle();
  std::string sound(fs::file_size(file()), 0);
  std::ifstream(file(), std::ios::binary).read(sound.data(), std::ssize(sound));
  std::minstd_rand random(1);
  for (int trial = 0; trial < 300; ++trial) {
    std::string bytes = sound;
    // Half of them among the pages that hold the tables' structure.
    size_t range = trial % 2 ? bytes.size() : 4 * 4096;
    for (int i = 0; i <= trial % 7; ++i)
      bytes[random() % range] ^= static_cast<char>(1 + random() % 255);
    for (const char *suffix : {"-wal", "-shm"})
      fs::remove(file() + suffix);
    std::ofstream(file(), std::ios::binary | std::ios::trunc) << bytes;
    store::Store store(options_);
    expectRight(store.find(keys));
    store.keep(valuesOf({"new"}));
    expectRight(store::Store(options_).find(keys));
  }
}

TEST_F(StoreTest, ACutFileIsHarmless) {
  std::vector<std::string> keys = numbered("k", 20);
  for (double part : {0.0, 0.0003, 0.01, 0.1, 0.5, 0.9, 0.999}) {
    fs::remove_all(options_.directory);
    fill(keys);
    settle();
    fs::resize_file(file(),
                    static_cast<uintmax_t>(part * static_cast<double>(fs::file_size(file()))));
    store::Store store(options_);
    expectRight(store.find(keys));
    store.keep(valuesOf(keys));
    EXPECT_EQ(store::Store(options_).find(keys), valuesOf(keys)) << part;
  }
}

TEST_F(StoreTest, AnEmptyFileIsDamaged) {
  fill({"a"});
  settle();
  fs::resize_file(file(), 0);
  store::Store store(options_);
  EXPECT_TRUE(store.find({"a"}).empty());
  ASSERT_EQ(store.use().warnings.size(), 1U);
  EXPECT_NE(store.use().warnings[0].find("damaged (it is empty)"), std::string::npos);
  store.keep(valuesOf({"a"}));
  store::Store next(options_);
  EXPECT_EQ(next.find({"a"}), valuesOf({"a"}));
  EXPECT_TRUE(next.use().warnings.empty());
}

TEST_F(StoreTest, OneThatWasKilledWhenItMadeTheStoreLeavesNone) {
  fs::create_directories(options_.directory);
  fs::permissions(options_.directory, fs::perms::owner_all);
  for (const char *suffix : {".new", ".new-wal", ".new-shm"})
    std::ofstream(file() + suffix) << "part of a database";
  store::Store store(options_);
  store.keep(valuesOf({"a"}));
  EXPECT_EQ(store.use().problem, "");
  EXPECT_TRUE(store.use().warnings.empty());
  EXPECT_EQ(store.find({"a"}), valuesOf({"a"}));
  for (const char *suffix : {".new", ".new-wal", ".new-shm"})
    EXPECT_FALSE(fs::exists(file() + suffix)) << suffix;
}

TEST_F(StoreTest, ACutLogIsHarmless) {
  std::vector<std::string> keys = numbered("k", 20);
  fill(numbered("before", 5));
  settle();
  fill(keys);
  ASSERT_GT(fs::file_size(log()), 40000U);
  fs::resize_file(log(), fs::file_size(log()) / 2);
  // One that a process was killed over looks the same.
  expectDamagedLog(/*warnings=*/0, /*found=*/0, keys);
  EXPECT_EQ(store::Store(options_).find(numbered("before", 5)).size(), 5U);
}

TEST_F(StoreTest, ADamagedLogIsEmptiedWithAWarning) {
  std::vector<std::string> keys = numbered("k", 12);
  auto write = [&] {
    fs::remove_all(options_.directory);
    fill(numbered("before", 5));
    settle();
    for (size_t i = 0; i < keys.size(); i += 4)
      fill({keys[i], keys[i + 1], keys[i + 2], keys[i + 3]});
  };
  write();
  std::ofstream(log(), std::ios::binary | std::ios::trunc)
      << std::string(9000, 'x'); // nothing that SQLite reads
  expectDamagedLog(1, 0, keys);
  EXPECT_EQ(store::Store(options_).find(numbered("before", 5)).size(), 5U);
  for (size_t at : {0, 9, 17, 25}) { // of the header
    write();
    change(log(), at);
    expectDamagedLog(1, 0, keys);
  }
  // In the first of three transactions, and in the second: what stands before is kept.
  for (size_t frame : {0, 1}) {
    write();
    change(log(), 32 + frame * (24 + 4096) + 100);
    expectDamagedLog(1, 0, keys);
  }
  write();
  change(log(), fs::file_size(log()) / 2);
  expectDamagedLog(1, 4, keys);
  // The last one might have been about to be written.
  write();
  change(log(), fs::file_size(log()) - 1000);
  expectDamagedLog(0, 8, keys);
}

TEST_F(StoreTest, WhatIsWrittenBackNeedsNoLog) {
  fill({"a"});
  EXPECT_GT(fs::file_size(log()), 0U);
  EXPECT_TRUE(store::Store(options_).writeBack());
  EXPECT_EQ(fs::file_size(log()), 0U);
  // Uses are noted in the log.
  fill({"b"});
  EXPECT_EQ(store::Store(options_).find({"a"}).size(), 1U);
  std::ofstream(log(), std::ios::binary | std::ios::trunc) << std::string(9000, 'x');
  EXPECT_EQ(store::Store(options_).find({"a", "b"}), valuesOf({"a"}));
}

TEST_F(StoreTest, AValueThatIsAnothersIsNotUsed) {
  fill({"a", "b"});
  execute("UPDATE entries SET value = (SELECT value FROM entries WHERE key = 'b') "
          "WHERE key = 'a'");
  store::Store store(options_);
  EXPECT_EQ(store.find({"a", "b"}), valuesOf({"b"}));
  EXPECT_EQ(store.use().warnings.size(), 1U);
  EXPECT_TRUE(store::Store(options_).find({"a"}).empty());
}

TEST_F(StoreTest, AnotherVersionIsLeftAlone) {
  fill({"a"});
  execute("PRAGMA user_version = 7");
  EXPECT_TRUE(expectUnused().warnings.empty());
  execute("PRAGMA user_version = 1");
  EXPECT_EQ(store::Store(options_).find({"a"}).size(), 1U);
}

TEST_F(StoreTest, AnotherProgramsDatabaseIsLeftAlone) {
  fs::create_directories(options_.directory);
  fs::permissions(options_.directory, fs::perms::owner_all);
  execute("CREATE TABLE letters (text TEXT); INSERT INTO letters VALUES ('dear')");
  fs::permissions(file(), fs::perms::owner_read | fs::perms::owner_write);
  expectUnused();
  execute("SELECT text FROM letters");
}

TEST_F(StoreTest, WhereNothingCanBeWrittenThereIsNone) {
  std::ofstream(parent_ / "cache") << "a file where a directory should be";
  EXPECT_TRUE(expectUnused().warnings.empty());
  fs::remove(parent_ / "cache");
  if (geteuid() != 0) { // root may write anywhere
    fs::permissions(parent_, fs::perms::owner_read | fs::perms::owner_exec);
    EXPECT_TRUE(expectUnused().warnings.empty());
  }
}

TEST_F(StoreTest, WhatOthersCanWriteIsNotTrusted) {
  fill({"a"});
  for (const std::string &path : {options_.directory, file()}) {
    fs::perms before = mode(path);
    fs::permissions(path, before | fs::perms::group_write);
    EXPECT_EQ(expectUnused().warnings.size(), 1U) << path;
    fs::permissions(path, before);
  }
  EXPECT_EQ(store::Store(options_).find({"a"}).size(), 1U);
}

TEST_F(StoreTest, LinksAreNotFollowed) {
  fill({"a"});
  fs::rename(file(), parent_ / "elsewhere");
  fs::create_symlink(parent_ / "elsewhere", file());
  expectUnused();
}

TEST_F(StoreTest, WhatBelongsToAnotherUserIsNotTrusted) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can give files away";
  fill({"a"});
  ASSERT_EQ(chown(file().c_str(), 65534, 65534), 0);
  EXPECT_EQ(expectUnused().warnings.size(), 1U);
  ASSERT_EQ(chown(file().c_str(), 0, 0), 0);
  ASSERT_EQ(chown(options_.directory.c_str(), 65534, 65534), 0);
  EXPECT_EQ(expectUnused().warnings.size(), 1U);
}

TEST_F(StoreTest, InTheHomeOfAnotherUserNothingIsMade) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can give files away";
  ASSERT_EQ(chown(parent_.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(expectUnused().warnings.empty());
  EXPECT_FALSE(fs::exists(parent_ / "cache"));
  ASSERT_EQ(chown(parent_.c_str(), 0, 0), 0);
}

/// Runs `work` in so many processes at once. Returns the sum of their exit codes.
template <typename F> int inProcesses(int count, F work) {
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i)
    if (pid_t child = fork(); child == 0)
      _exit(work(i));
    else
      children.push_back(child);
  int sum = 0;
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    sum += WIFEXITED(status) ? WEXITSTATUS(status) : 100;
  }
  return sum;
}

TEST_F(StoreTest, ManyProcessesAtOnce) {
  // All keep the same ten and ten of their own. A process may give up when the others are slow, but
  // none may find anything wrong.
  int wrong = inProcesses(8, [&](int process) {
    for (int round = 0; round < 10; ++round) {
      store::Store store(options_);
      std::vector<std::string> keys = numbered("all", 10);
      std::vector<std::string> own =
          numbered("own" + std::to_string(process) + "." + std::to_string(round) + ".", 10);
      keys.insert(keys.end(), own.begin(), own.end());
      for (const auto &[key, value] : store.find(keys))
        if (value != valueOf(key))
          return 1;
      store.keep(valuesOf(keys));
      if (!store.use().warnings.empty())
        return 1;
    }
    return 0;
  });
  EXPECT_EQ(wrong, 0);
  store::Store store(options_);
  EXPECT_EQ(store.find(numbered("all", 10)).size(), 10U);
  EXPECT_EQ(store.use().problem, "");
  execute("PRAGMA integrity_check");
}

TEST_F(StoreTest, OfManyProcessesOneSetsADamagedFileAside) {
  for (int trial = 0; trial < 5; ++trial) {
    fs::remove_all(options_.directory);
    fill(numbered("k", 30));
    settle();
    std::fstream(file(), std::ios::in | std::ios::out | std::ios::binary) << "damaged";
    // Each returns how often it warned.
    int warnings = inProcesses(8, [&](int) {
      store::Store store(options_);
      store.find(numbered("k", 30));
      store.keep(valuesOf(numbered("k", 30)));
      return static_cast<int>(store.use().warnings.size());
    });
    EXPECT_EQ(warnings, 1);
    EXPECT_EQ(store::Store(options_).find(numbered("k", 30)), valuesOf(numbered("k", 30)));
  }
}

TEST_F(StoreTest, KilledProcessesLeaveItSound) {
  fill(numbered("before", 5));
  std::minstd_rand random(3);
  for (int trial = 0; trial < 20; ++trial) {
    pid_t child = fork();
    if (child == 0)
      for (int i = 0;; ++i)
        store::Store(options_).keep(valuesOf(numbered("n" + std::to_string(i) + ".", 20)));
    std::this_thread::sleep_for(std::chrono::milliseconds(1 + random() % 20));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  store::Store store(options_);
  EXPECT_EQ(store.find(numbered("before", 5)).size(), 5U);
  EXPECT_TRUE(store.use().warnings.empty());
}

TEST_F(StoreTest, NobodyWaitsLongForAnother) {
  fill({"a"});
  // Far beyond the patience of a store, which is below a second, also on a machine with other work.
  constexpr double kLong = 30;
  auto timed = [&](auto work) {
    auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  int lock = open((options_.directory + "/lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  EXPECT_LT(timed([&] { expectUnused(); }), kLong);
  close(lock);

  // One that writes for long: others still read.
  sqlite3 *handle = nullptr;
  ASSERT_EQ(sqlite3_open(file().c_str(), &handle), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(handle, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_LT(timed([&] {
              store::Store store(options_);
              EXPECT_EQ(store.find({"a"}).size(), 1U);
              store.keep(valuesOf({"b"}));
              EXPECT_EQ(store.use().kept, 0U);
            }),
            kLong);
  sqlite3_close(handle);
}

TEST(StoreDirectory, FollowsTheEnvironment) {
  const char *home = getenv("HOME"), *cache = getenv("XDG_CACHE_HOME");
  std::string oldHome = home ? home : "", oldCache = cache ? cache : "";
  setenv("HOME", "/home/someone", 1);
  setenv("XDG_CACHE_HOME", "/var/cache/someone", 1);
  EXPECT_EQ(store::defaultDirectory(), "/var/cache/someone/sheaf");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(store::defaultDirectory(), "/home/someone/.cache/sheaf");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(store::defaultDirectory(), "/home/someone/.cache/sheaf");
  unsetenv("HOME");
  EXPECT_EQ(store::defaultDirectory(), "");
  if (home)
    setenv("HOME", oldHome.c_str(), 1);
  if (cache)
    setenv("XDG_CACHE_HOME", oldCache.c_str(), 1);
}

} // namespace
