//===- Database.h - SQLite with exceptions ----------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_STORE_DATABASE_H
#define SHEAF_COMPILER_STORE_DATABASE_H

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace sheaf::store {

/// What SQLite says that went wrong.
class DatabaseError : public std::runtime_error {
public:
  DatabaseError(bool damaged, const std::string &message)
      : std::runtime_error(message), damaged(damaged) {}
  bool damaged; ///< the file is no database, or not a sound one
};

/// An open database, used by one thread. All members throw DatabaseError.
class Database {
public:
  /// Opens a file that exists. Waits for other processes no longer than `patience`, each time.
  Database(const std::string &path, std::chrono::milliseconds patience);
  ~Database();
  Database(const Database &) = delete;
  Database &operator=(const Database &) = delete;

  /// Statements without results.
  void run(const std::string &sql);
  /// The first column of the first row of a query.
  int64_t number(const std::string &sql);

private:
  friend class Statement;
  friend class Transaction;
  sqlite3 *handle_ = nullptr;
};

/// One statement, to be run any number of times. What is bound must live until it is reset.
class Statement {
public:
  Statement(Database &database, std::string_view sql);
  ~Statement();
  Statement(const Statement &) = delete;
  Statement &operator=(const Statement &) = delete;

  Statement &bind(int64_t value);
  Statement &bind(std::string_view text);
  Statement &bind(std::span<const uint8_t> bytes);
  /// The next row; false after the last one, when the statement may be bound anew.
  bool step();
  /// Steps to the end.
  void finish();

  int64_t number(int column) const;
  std::string_view text(int column) const;
  std::span<const uint8_t> bytes(int column) const; ///< until the next step

private:
  [[noreturn]] void fail() const;

  Database &database_;
  sqlite3_stmt *handle_ = nullptr;
  int bound_ = 0;
};

/// Changes that are made together or not at all.
class Transaction {
public:
  explicit Transaction(Database &database);
  ~Transaction(); ///< takes back what was not committed
  void commit();

private:
  Database &database_;
};

} // namespace sheaf::store

#endif // SHEAF_COMPILER_STORE_DATABASE_H
