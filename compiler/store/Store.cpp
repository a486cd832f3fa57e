//===- Store.cpp - What is kept from one start to the next ----------------===//
#include "compiler/store/Store.h"

#include "compiler/store/Database.h"
#include "compiler/store/Directory.h"
#include "compiler/store/Log.h"
#include "runtime/io/checksum.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <span>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sheaf::store {

namespace {

/// A start waits no longer for another process. Compiling is what it does instead.
constexpr std::chrono::milliseconds kPatience{250};
/// In the header of the file: that it is ours, and which form it has.
constexpr int64_t kApplication = 0x53686631;
constexpr int64_t kVersion = 1;
/// What an entry takes beside its value.
constexpr uint64_t kEntryBytes = 256;

/// The log is written back where kLogBytes says so, or Store::writeBack. Nothing is lost but the
/// last values when the machine loses its power.
constexpr const char *kSettings = "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0";
/// SQLite's log of changes: who opens the file first reads all of it.
constexpr uint64_t kLogBytes = 2 << 20;

/// Of key and value: a value under another's key is as bad as a damaged one.
int64_t checksum(std::string_view key, std::span<const uint8_t> value) {
  Bytes all(key.begin(), key.end());
  all.insert(all.end(), value.begin(), value.end());
  return static_cast<int64_t>(io::checksum(all));
}

/// From the log into the file, when there is more of it than so many bytes. False when other
/// processes kept it from that.
bool writeBack(Database &database, const std::string &path, uint64_t most) {
  struct stat status{};
  return stat((path + "-wal").c_str(), &status) != 0 ||
         static_cast<uint64_t>(status.st_size) <= most ||
         database.number("PRAGMA wal_checkpoint(TRUNCATE)") == 0;
}

/// The number of a use after all others. A damaged file may hold any.
int64_t later(int64_t newest) { return static_cast<int64_t>(static_cast<uint64_t>(newest) + 1); }

} // namespace

std::string defaultDirectory() {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  // The specification says that relative ones are to be ignored.
  if (cache && *cache == '/')
    return std::string(cache) + "/sheaf";
  return home && *home == '/' ? std::string(home) + "/.cache/sheaf" : std::string();
}

/// The files of the store, locked, and the open database. All members throw DatabaseError and
/// Refused.
///
/// Who uses the database holds the lock together with others; who makes it, or puts another in its
/// place, holds it alone. So nobody has a file open that is no longer the one at its path, whose
/// log would be taken for that of the new one.
struct Store::Connection {
  explicit Connection(const std::string &directory)
      : path(directory + "/store-" + std::to_string(kVersion) + ".sqlite"),
        lock(prepared(directory) + "/lock") {
    if (!lock.together(kPatience))
      throw Refused(directory + " is being made by another process", /*distrusted=*/false);
  }

  static const std::string &prepared(const std::string &directory) {
    prepareDirectory(directory);
    return directory;
  }

  /// False when there is none.
  bool open() {
    id = trustedFile(path);
    if (!id)
      return false;
    for (const char *suffix : {"-wal", "-shm"})
      trustedFile(path + suffix);
    database = std::make_unique<Database>(path, kPatience);
    int64_t application = database->number("PRAGMA application_id");
    int64_t version = database->number("PRAGMA user_version");
    if (application == 0 && version == 0 &&
        database->number("SELECT count(*) FROM sqlite_master") == 0)
      throw DatabaseError(/*damaged=*/true, "it is empty");
    if (application != kApplication)
      throw Refused(path + " is the database of another program", /*distrusted=*/false);
    if (version != kVersion)
      throw Refused(path + " was made by another version of Sheaf", /*distrusted=*/false);
    database->run(kSettings);
    return true;
  }

  /// Puts a new database in the place of none, or of a damaged one, which is set aside. True when
  /// it was this process that did so.
  bool replace(std::optional<FileId> damaged) {
    database.reset();
    if (!lock.alone(kPatience))
      throw Refused(path + (damaged ? " is damaged, and in use by other processes"
                                    : " is being made by another process"),
                    /*distrusted=*/false);
    bool setAside = false;
    // Another process may have done so meanwhile.
    if (trustedFile(path) == damaged || !open()) {
      database.reset();
      if (damaged) {
        setAside = rename(path.c_str(), (path + ".damaged").c_str()) == 0;
        if (!setAside && errno != ENOENT)
          throw Refused(path + " is damaged: " + std::strerror(errno), /*distrusted=*/false);
      }
      create();
    }
    if (!lock.together(kPatience))
      throw Refused(path + " is in use by other processes", /*distrusted=*/false);
    return setAside;
  }

  /// At its path stands a whole one or none, whenever this process is killed. So an empty file is
  /// not one that is being made.
  void create() {
    std::string made = path + ".new";
    auto removeBeside = [](const std::string &file) {
      for (const char *suffix : {"-wal", "-shm"})
        unlink((file + suffix).c_str());
    };
    removeBeside(made);
    unlink(made.c_str());
    // SQLite gives the files that it makes beside it the same mode.
    int file =
        ::open(made.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
    if (file < 0)
      throw Refused(path + ": " + std::strerror(errno), /*distrusted=*/false);
    close(file);
    fill(made);
    removeBeside(made);
    removeBeside(path);
    if (rename(made.c_str(), path.c_str()) != 0)
      throw Refused(path + ": " + std::strerror(errno), /*distrusted=*/false);
    open();
  }

  static void fill(const std::string &path) {
    Database database(path, kPatience);
    database.run("PRAGMA page_size = 4096; PRAGMA auto_vacuum = INCREMENTAL");
    // Where the file system cannot share memory it stays another mode, which is slower and as safe.
    database.run("PRAGMA journal_mode = WAL");
    database.run(kSettings);
    Transaction transaction(database);
    database.run("CREATE TABLE entries (key TEXT NOT NULL PRIMARY KEY, used INTEGER NOT NULL,"
                 " bytes INTEGER NOT NULL, checksum INTEGER NOT NULL, value BLOB NOT NULL);"
                 "CREATE INDEX entries_used ON entries (used, bytes)");
    database.run("PRAGMA application_id = " + std::to_string(kApplication));
    database.run("PRAGMA user_version = " + std::to_string(kVersion));
    transaction.commit();
    store::writeBack(database, path, 0);
  }

  bool writeBack(uint64_t most) { return store::writeBack(*database, path, most); }

  bool isLogDamaged() const { return isDamagedLog(path + "-wal"); }

  /// Whether it is so; then what SQLite reads of the log is in the file, and the log empty.
  bool emptyDamagedLog() {
    database.reset();
    // Nobody writes to it now.
    bool isSure = lock.alone(kPatience);
    bool isDamaged = isSure && isLogDamaged();
    if (!isSure && !lock.together(kPatience))
      throw Refused(path + " is in use by other processes", /*distrusted=*/false);
    if (!open())
      throw Refused(path + " is being made by another process", /*distrusted=*/false);
    if (isDamaged)
      writeBack(0);
    if (isSure && !lock.together(kPatience))
      throw Refused(path + " is in use by other processes", /*distrusted=*/false);
    return isDamaged;
  }

  /// Deletes what was not used for longest until at most `limit` bytes are left.
  void shrink(uint64_t limit) {
    int64_t excess =
        database->number("SELECT sum(bytes) FROM entries") - static_cast<int64_t>(limit);
    if (excess <= 0)
      return;
    std::vector<int64_t> rows;
    Statement oldest(*database, "SELECT rowid, bytes FROM entries ORDER BY used, bytes");
    while (excess > 0 && oldest.step()) {
      rows.push_back(oldest.number(0));
      excess -= oldest.number(1);
    }
    Statement remove(*database, "DELETE FROM entries WHERE rowid = ?");
    for (int64_t row : rows)
      remove.bind(row).finish();
  }

  int64_t newest() { return database->number("SELECT max(used) FROM entries"); }

  std::string path;
  FileLock lock;
  std::optional<FileId> id;
  std::unique_ptr<Database> database;
};

Store::Store(Options options) : options_(std::move(options)) {
  use_.directory = options_.directory;
}
Store::~Store() = default;

void Store::guarded(const std::function<void(Connection &)> &work) {
  if (options_.directory.empty() || !use_.problem.empty())
    return;
  try {
    Connection connection(options_.directory);
    try {
      if (!connection.open())
        connection.replace(std::nullopt);
      else if (!knowsLog_ && connection.isLogDamaged() && connection.emptyDamagedLog())
        use_.warnings.push_back("the log of the store " + connection.path +
                                " was damaged; what had been written last is lost");
      knowsLog_ = true;
      work(connection);
    } catch (const DatabaseError &error) {
      if (!error.damaged)
        throw;
      if (connection.replace(connection.id))
        use_.warnings.push_back("the store " + connection.path + " was damaged (" + error.what() +
                                "); it is now " + connection.path +
                                ".damaged, and a new one was begun");
      work(connection);
    }
  } catch (const Refused &refused) {
    use_.problem = refused.what();
    if (refused.distrusted)
      use_.warnings.push_back("the store is not used: " + use_.problem);
  } catch (const std::exception &error) {
    use_.problem = options_.directory + ": " + error.what();
  }
}

/// What is there of some keys.
struct Store::Found {
  Values values;                         ///< whole ones
  std::vector<std::string_view> damaged; ///< of the keys
  bool stale = false;                    ///< some were not used by the last who used any

  Found(Connection &connection, const std::vector<std::string> &keys, int64_t newest) {
    Statement query(*connection.database,
                    "SELECT used, checksum, value FROM entries WHERE key = ?");
    for (const std::string &key : keys) {
      query.bind(key);
      while (query.step()) {
        std::span<const uint8_t> value = query.bytes(2);
        if (checksum(key, value) != query.number(1)) {
          damaged.push_back(key);
          continue;
        }
        stale |= query.number(0) != newest;
        values.emplace(key, Bytes(value.begin(), value.end()));
      }
    }
  }
};

Values Store::peek(const std::vector<std::string> &keys) {
  Values found;
  guarded([&](Connection &connection) {
    found = std::move(Found(connection, keys, connection.newest()).values);
  });
  return found;
}

Values Store::find(const std::vector<std::string> &keys) {
  Values found;
  size_t dropped = 0;
  guarded([&](Connection &connection) {
    Database &database = *connection.database;
    int64_t newest = connection.newest();
    Found all(connection, keys, newest);
    found = std::move(all.values);
    if (!all.stale && all.damaged.empty())
      return;
    try {
      Transaction transaction(database);
      Statement touch(database, "UPDATE entries SET used = ? WHERE key = ?");
      for (const auto &[key, value] : found)
        touch.bind(later(newest)).bind(key).finish();
      Statement remove(database, "DELETE FROM entries WHERE key = ?");
      for (std::string_view key : all.damaged)
        remove.bind(key).finish();
      transaction.commit();
      connection.writeBack(kLogBytes);
    } catch (const DatabaseError &error) {
      // What was found is whole. Another process will note that it was used.
      if (error.damaged)
        throw;
    }
    dropped = all.damaged.size();
  });
  if (dropped)
    use_.warnings.push_back("the store " + options_.directory + " held " + std::to_string(dropped) +
                            " values that were damaged; they are made anew");
  use_.found += found.size();
  use_.made += keys.size() - found.size();
  return found;
}

bool Store::writeBack() {
  bool isDone = false;
  guarded([&](Connection &connection) { isDone = connection.writeBack(0); });
  return isDone;
}

void Store::keep(const Values &values) {
  size_t kept = 0;
  guarded([&](Connection &connection) {
    Database &database = *connection.database;
    kept = 0;
    Transaction transaction(database);
    int64_t used = later(connection.newest());
    Statement insert(database, "INSERT OR REPLACE INTO entries (key, used, bytes, checksum, value)"
                               " VALUES (?, ?, ?, ?, ?)");
    for (const auto &[key, value] : values) {
      uint64_t bytes = value.size() + kEntryBytes;
      if (bytes > options_.limit)
        continue;
      insert.bind(key).bind(used).bind(static_cast<int64_t>(bytes)).bind(checksum(key, value));
      insert.bind(std::span<const uint8_t>(value)).finish();
      ++kept;
    }
    connection.shrink(options_.limit);
    transaction.commit();
    // Free pages are used again. Only where the limit has become less is there much of them.
    if (database.number("PRAGMA freelist_count") > database.number("PRAGMA page_count") / 4)
      database.run("PRAGMA incremental_vacuum");
    connection.writeBack(kLogBytes);
  });
  use_.kept += kept;
}

} // namespace sheaf::store
