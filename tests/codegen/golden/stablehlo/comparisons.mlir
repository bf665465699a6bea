// where((x > y) & ~(x == 0), x, -y)
module @tenon {
  func.func public @main(%arg0: tensor<4x8xf32>, %arg1: tensor<4x8xf32>) -> (tensor<4x8xf32>) {
    %2 = stablehlo.compare GT, %arg0, %arg1, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    %3 = stablehlo.constant dense<0x00000000> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %5 = stablehlo.compare EQ, %arg0, %4, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    %6 = stablehlo.convert %5 : (tensor<4x8xi1>) -> tensor<4x8xui8>
    %7 = stablehlo.constant dense<0> : tensor<4x8xui8>
    %8 = stablehlo.compare EQ, %6, %7, UNSIGNED : (tensor<4x8xui8>, tensor<4x8xui8>) -> tensor<4x8xi1>
    %9 = stablehlo.convert %2 : (tensor<4x8xi1>) -> tensor<4x8xui8>
    %10 = stablehlo.compare NE, %9, %7, UNSIGNED : (tensor<4x8xui8>, tensor<4x8xui8>) -> tensor<4x8xi1>
    %11 = stablehlo.convert %8 : (tensor<4x8xi1>) -> tensor<4x8xui8>
    %12 = stablehlo.compare NE, %11, %7, UNSIGNED : (tensor<4x8xui8>, tensor<4x8xui8>) -> tensor<4x8xi1>
    %13 = stablehlo.and %10, %12 : tensor<4x8xi1>
    %14 = stablehlo.negate %arg1 : tensor<4x8xf32>
    %15 = stablehlo.select %13, %arg0, %14 : tensor<4x8xi1>, tensor<4x8xf32>
    "func.return"(%15) : (tensor<4x8xf32>) -> ()
  }
}
