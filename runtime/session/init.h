//===- init.h - Initialisers of parameters ----------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_SESSION_INIT_H
#define SHEAF_RUNTIME_SESSION_INIT_H

#include "runtime/model/model.h"

namespace sheaf::rt {

/// Row-major, unpadded elements, in its dtype, of a parameter as its initialiser makes them.
///
/// zeros, ones, constant(c), identity (ones where the last two indices agree), normal(std),
/// normal(mean, std), uniform(bound) in [-bound, bound), uniform(lo, hi) in [lo, hi),
/// glorot: uniform(sqrt(6 / (in + out))), he: normal(sqrt(2 / in)),
/// orthogonal: rows (or columns, whichever are fewer) orthonormal, times an optional gain.
/// `in` and `out` are the last two extents (both the extent at rank 1, 1 at rank 0); leading
/// extents count separate matrices. No initialiser means zeros.
///
/// Element i of a parameter depends on (seed, name, i) alone, so neither the order of parameters
/// nor those of a part of the model matter, and on every machine it is the same bit for bit:
///   key = mix(seed ^ fnv1a(name)), bits(i) = mix(key + (i + 1) * 0x9E3779B97F4A7C15),
///   u(i) = (bits(i) >> 11) * 2^-53; mix is the finaliser of splitmix64;
///   elements 2j and 2j + 1 of normal: r = sqrt(-2 ln(1 - u(2j))), r cos(2 pi u(2j + 1)) and
///   r sin(2 pi u(2j + 1)), in double with series of our own, then rounded to the dtype.
///
/// Throws UserError for an unknown initialiser or wrong arguments, naming the parameter.
std::vector<uint8_t> initialise(const ParamDesc &param, uint64_t seed);

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SESSION_INIT_H
