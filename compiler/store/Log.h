//===- Log.h - Whether SQLite's log is whole --------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_STORE_LOG_H
#define SHEAF_COMPILER_STORE_LOG_H

#include <string>

namespace sheaf::store {

/// Whether a write-ahead log (sqlite.org/walformat.html) has lost something: its header is wrong,
/// or it holds transactions after a place where SQLite stops reading. SQLite takes both for the
/// end of the log and says nothing. False, too, of a log that was cut or has lost its last
/// transaction only, which may be the work of a process that was killed.
///
/// While another process writes to the log it may look damaged.
bool isDamagedLog(const std::string &path);

} // namespace sheaf::store

#endif // SHEAF_COMPILER_STORE_LOG_H
