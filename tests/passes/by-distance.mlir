// RUN: sheaf-opt --by-distance=remarks=1 %s 2>&1 | FileCheck %s
// RUN: sheaf-opt --by-distance=without=by-distance %s | FileCheck %s --check-prefix=OFF

// OFF-NOT: "take"

// CHECK: remark: computed of each distance, and looked up for each row and column
// CHECK-NOT: remark

// There are n + m - 1 distances, from that of the last row and the first column on.
// CHECK-LABEL: func.func @decay
// CHECK: %[[D:.*]] = sheaf.apply "sub"
// CHECK: %[[M:.*]] = sheaf.dim %[[D]], 1
// CHECK: %[[N:.*]] = sheaf.dim %[[D]], 0
// CHECK: %[[LAST:.*]] = arith.subi %[[N]]
// CHECK: %[[SUM:.*]] = arith.addi %[[M]], %[[LAST]]
// CHECK: %[[COUNT:.*]] = arith.maxsi %[[SUM]]
// CHECK: sheaf.apply "iota"(%[[COUNT]])
// CHECK: %[[EXP:.*]] = sheaf.apply "exp"{{.*}} -> tensor<?xf32>
// CHECK: %[[DECAY:.*]] = sheaf.apply "mul"({{.*}}%[[EXP]]{{.*}} -> tensor<?xf32>
// CHECK: %[[PLACES:.*]] = sheaf.apply "add"(%[[D]]
// CHECK: sheaf.apply "take"(%[[DECAY]], %[[PLACES]]) {{.*}} -> tensor<?x?xf32>
func.func @decay(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?x?xf32> {
  %n = sheaf.dim %x, 0 : tensor<?xf32>
  %m = sheaf.dim %y, 0 : tensor<?xf32>
  %p = sheaf.apply "iota"(%n) {} : (i64) -> tensor<?xi32>
  %q = sheaf.apply "iota"(%m) {} : (i64) -> tensor<?xi32>
  %rows = sheaf.apply "reshape"(%p, %n) {} : (tensor<?xi32>, i64) -> tensor<?x1xi32>
  %columns = sheaf.apply "reshape"(%q, %m) {} : (tensor<?xi32>, i64) -> tensor<1x?xi32>
  %d = sheaf.apply "sub"(%columns, %rows) {} : (tensor<1x?xi32>, tensor<?x1xi32>) -> tensor<?x?xi32>
  %f = sheaf.apply "f32"(%d) {} : (tensor<?x?xi32>) -> tensor<?x?xf32>
  %e = sheaf.apply "exp"(%f) {} : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %s = sheaf.apply "sin"(%f) {} : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %r = sheaf.apply "mul"(%s, %e) {} : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// What takes little work is computed where it is used, and so are masks and what numbers of the
// instance come into.
// CHECK-LABEL: func.func @stays
// CHECK-NOT: "take"
func.func @stays(%x: tensor<?xf32>) -> (tensor<?x?xf32>, tensor<?x?xi1>, tensor<?x?xf32>) {
  %n = sheaf.dim %x, 0 : tensor<?xf32>
  %p = sheaf.apply "iota"(%n) {} : (i64) -> tensor<?xi32>
  %rows = sheaf.apply "reshape"(%p, %n) {} : (tensor<?xi32>, i64) -> tensor<?x1xi32>
  %columns = sheaf.apply "reshape"(%p, %n) {} : (tensor<?xi32>, i64) -> tensor<1x?xi32>
  %d = sheaf.apply "sub"(%columns, %rows) {} : (tensor<1x?xi32>, tensor<?x1xi32>) -> tensor<?x?xi32>
  %f = sheaf.apply "f32"(%d) {} : (tensor<?x?xi32>) -> tensor<?x?xf32>
  %t = sheaf.apply "add"(%f, %x) {} : (tensor<?x?xf32>, tensor<?xf32>) -> tensor<?x?xf32>
  %e = sheaf.apply "exp"(%t) {} : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %s = sheaf.apply "sin"(%e) {} : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %a = sheaf.apply "abs"(%f) {} : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %g = sheaf.apply "exp"(%f) {} : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %c = sheaf.apply "sin"(%g) {} : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %b = sheaf.apply "gt"(%c, %g) {} : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xi1>
  return %a, %b, %s : tensor<?x?xf32>, tensor<?x?xi1>, tensor<?x?xf32>
}
