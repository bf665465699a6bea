// arange(6) * 2
module @tenon {
  func.func public @main() -> (tensor<6xi64>) {
    %0 = stablehlo.iota dim = 0 : tensor<6xi64>
    %1 = stablehlo.constant dense<2> : tensor<i64>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<i64>) -> tensor<6xi64>
    %3 = stablehlo.multiply %0, %2 : tensor<6xi64>
    "func.return"(%3) : (tensor<6xi64>) -> ()
  }
}
